import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ImageRules } from "./protocol.ts";
import { noise } from "./samples.fixture.ts";
import { createImageVerifier, type ImageOwner, type ImageVerifier } from "./verifier.ts";

const rules: ImageRules = {
  accept: ["jpeg", "png", "webp"],
  maxBytes: 20 * 1024 * 1024,
  maxPixels: 50_000_000,
};
const owner: ImageOwner = { accountId: "acc_a", signal: new AbortController().signal };

let verifier: ImageVerifier;
beforeAll(() => {
  verifier = createImageVerifier({ processes: 1, memoryMb: 640, timeoutMs: 15_000 });
});
afterAll(() => verifier[Symbol.asyncDispose]());

describe("orientation", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])("gives the size that a viewer sees for %i", async (value) => {
    for (const format of ["jpeg", "png", "webp"] as const) {
      const image = noise().toFormat(format).withMetadata({ orientation: value });
      const size = value < 5 ? { width: 120, height: 80 } : { width: 80, height: 120 };
      const verified = await verifier.verify(await image.toBuffer(), rules, owner);
      expect(verified).toMatchObject({ format, ...size, orientation: value });
    }
  });

  it("takes a value outside 1 to 8 for none", async () => {
    const bytes = await noise().jpeg().withMetadata({ orientation: 6 }).toBuffer();
    const tag = bytes.indexOf(Buffer.from([0x12, 0x01, 3, 0, 1, 0, 0, 0]));
    expect(bytes[tag + 8]).toBe(6);
    for (const value of [0, 9, 255]) {
      bytes[tag + 8] = value;
      const verified = await verifier.verify(bytes, rules, owner);
      expect(verified).toMatchObject({ width: 120, height: 80, orientation: 1 });
    }
  });
});
