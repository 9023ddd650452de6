import { readFileSync } from "node:fs";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import { describe, expect, test } from "vitest";
import { chanceOf, changeBytes } from "../../../../test/support/chance.ts";
import { takeSound } from "./length.ts";

/** Sounds of 0.3 to 0.7 s that real encoders made (FFmpeg 5.1: LAME, libopus, libvorbis, its own), in base64. */
const encoded: Record<string, string> = JSON.parse(
  readFileSync(new URL("./encoded.fixture.json", import.meta.url), "utf8"),
);
const bytesOf = (name: string) => {
  const bytes = Buffer.from(encoded[name] ?? "", "base64");
  return new Uint8Array(bytes);
};

/** What another reader finds in a file: what is played, and its length. */
async function read(bytes: Uint8Array<ArrayBuffer>) {
  using input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const [track] = await input.getAudioTracks();
  if (!track) throw new Error("no sound");
  const packets: Buffer[] = [];
  for await (const { data } of new EncodedPacketSink(track).packets())
    packets.push(Buffer.from(data));
  const first = await track.getFirstTimestamp();
  const seconds = (await track.computeDuration()) - Math.max(0, first);
  const codec = await track.getCodec();
  const [rate, channels] = [await track.getSampleRate(), await track.getNumberOfChannels()];
  return { packets: Buffer.concat(packets).toString("hex"), seconds, codec, rate, channels };
}

describe("an honest sound arrives whole, in a file of ours", () => {
  test.each([
    ["mp3", "mp3"],
    ["mp3 without facts", "mp3"],
    ["wav of 16 bits", "wav"],
    ["wav of 24 bits", "wav"],
    ["wav of floats", "wav"],
    ["flac", "flac"],
    ["m4a", "m4a"],
    ["mp4 in fragments", "m4a"],
    ["ogg with opus", "ogg"],
    ["ogg with vorbis", "ogg"],
    ["webm", "ogg"],
  ])("%s", async (name, ending) => {
    const before = await read(bytesOf(name));
    const taken = await takeSound(bytesOf(name));
    if (!taken) throw new Error("refused");
    expect(taken.ending).toBe(ending);
    const after = await read(new Uint8Array(taken.bytes));
    // Its frames, packets or samples are the same, and so is its length, but for a part of one.
    const frame = 0.036;
    expect(after).toEqual({ ...before, seconds: expect.any(Number) });
    expect(Math.abs(after.seconds - before.seconds)).toBeLessThan(frame);
    expect(after.seconds).toBeLessThanOrEqual(taken.seconds + 1e-9);
    // What is written is what is read: taken again it is the same.
    const again = await takeSound(new Uint8Array(taken.bytes));
    expect(again && Buffer.compare(again.bytes, taken.bytes)).toBe(0);
    expect(again?.seconds).toBeCloseTo(taken.seconds, 9);
  });
});

test("what stands beside the sound stays here", async () => {
  const secret = Buffer.from("A name that no upstream needs");
  const mp3 = Buffer.concat([bytesOf("mp3"), Buffer.from("TAG"), secret, Buffer.alloc(92)]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(secret.length + 1);
  const chunk = [Buffer.from("LIST"), size, secret, Buffer.alloc(1)];
  const wav = Buffer.concat([bytesOf("wav of 16 bits"), ...chunk]);
  for (const file of [mp3, wav]) {
    const taken = await takeSound(new Uint8Array(file));
    expect(taken?.bytes.length).toBeGreaterThan(1_000);
    expect(Buffer.from(taken?.bytes ?? []).includes(secret)).toBe(false);
  }
  const plain = await takeSound(bytesOf("wav of 16 bits"));
  expect((await takeSound(new Uint8Array(wav)))?.seconds).toBe(plain?.seconds);
});

test("bytes that are changed at random make no more than an answer", {
  timeout: 240_000,
}, async () => {
  const chance = chanceOf(7);
  for (const name of Object.keys(encoded)) {
    for (let round = 0; round < 40; round++) {
      const bytes = bytesOf(name);
      changeBytes(bytes, chance, round % 2 ? bytes.length : 700);
      const taken = await takeSound(bytes).catch(() => undefined);
      if (taken) expect(taken.bytes.length).toBeGreaterThan(0);
    }
  }
});
