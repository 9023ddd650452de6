import { expect, test } from "vitest";
import type { ImageRules } from "./protocol.ts";
import { noise } from "./samples.fixture.ts";
import { createImageVerifier } from "./verifier.ts";

const rules: ImageRules = {
  accept: ["jpeg", "png", "webp"],
  maxBytes: 20 * 1024 * 1024,
  maxPixels: 50_000_000,
};
const signal = new AbortController().signal;

test("a photo does not wait for another account's largest pictures", async () => {
  await using verifier = createImageVerifier({ processes: 3, memoryMb: 640, timeoutMs: 15_000 });
  const verify = (accountId: string, bytes: Uint8Array) =>
    verifier.verify(bytes, rules, { accountId, signal });
  const base = noise(1_550, 1_550).resize(7_000, 7_000, { kernel: "nearest" });
  const largest = await base.webp({ lossless: true, effort: 0 }).toBuffer();
  const photo = await noise(500, 400).resize(4_600, 3_500).jpeg().toBuffer();
  // Decoders start once.
  await Promise.all([verify("a", photo), verify("b", photo)]);
  const order: string[] = [];
  const note = (name: string) => () => order.push(name);
  const all = [1, 2].map(() => verify("a", largest).then(note("largest")));
  all.push(verify("b", photo).then(note("photo")));
  await Promise.all(all);
  expect(order).toEqual(["photo", "largest", "largest"]);
});
