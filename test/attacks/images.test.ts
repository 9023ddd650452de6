import { afterAll, beforeAll, expect, test } from "vitest";
import * as samples from "#kit/images/samples.fixture.ts";
import type { Caller } from "../e2e/caller.ts";
import { type MediaWorld, startMediaWorld } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { promptlyInTurns, type Turn } from "../support/promptly.ts";

/** Milliseconds by which the worst attack of one account may delay another account's request. */
const graceMs = 1_000;
/** Hostile images at once. The largest body must be read for each. */
const atOnce = 60;

let media: MediaWorld;
let small: Buffer;

oneProcessOnly();
beforeAll(async () => {
  media = await startMediaWorld();
  small = await samples.plain(3, 3).png().toBuffer();
});
afterAll(() => media?.[Symbol.asyncDispose]());

async function upload(caller: Caller, bytes: Uint8Array, signal?: AbortSignal): Promise<number> {
  const form = new FormData();
  form.append("purpose", "vision");
  form.append("file", new Blob([new Uint8Array(bytes)]), "a.png");
  const answer = await fetch(`${media.world.baseUrl}/files`, {
    method: "POST",
    body: form,
    headers: { authorization: `Bearer ${caller.key}` },
    ...(signal ? { signal } : {}),
  });
  await answer.arrayBuffer();
  return answer.status;
}

test.for([
  ["a PNG whose rows are a pixel each", () => samples.plainPng(1, 50_000_000)],
  ["a PNG full of text that unpacks to 8 MB", () => samples.textBombPng(2 * 1024 * 1024)],
  ["a JPEG of many scans", () => samples.jpegOfScans(8_000, 6_250, 100)],
] as const)("60 at once of one account without money: %s", async ([, make]) => {
  const hostile = await media.world.caller();
  const other = await media.world.caller();
  const bytes = await make();
  // Starts the decoders.
  await Promise.all([upload(hostile, small), upload(other, small)]);
  // The median of five, because other work of the machine may delay one of them.
  await promptlyInTurns(graceMs, takeTurn, { of: "median" });

  async function takeTurn({ idle, real }: Turn): Promise<void> {
    await idle(() => upload(other, small));
    const leaving = new AbortController();
    let ended = 0;
    const attack = Array.from({ length: atOnce }, () =>
      upload(hostile, bytes, leaving.signal).then(
        () => ended++,
        () => {},
      ),
    );
    // Its first image has ended, so others of it are being decoded.
    await Promise.race(attack);
    for (let round = 0; round < 5; round++) {
      expect(await real(() => upload(other, small))).toBe(200);
    }
    expect(ended).toBeLessThan(atOnce);
    leaving.abort();
    await Promise.all(attack);
  }
});
