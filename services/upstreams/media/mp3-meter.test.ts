import { describe, expect, test } from "vitest";
import { openMp3 } from "../../builtin/audio/mp3.ts";
import { createMp3Meter } from "./mp3-meter.ts";
import { sampleMp3 } from "./samples.fixture.ts";

/** Measures bytes that come in pieces. */
function secondsOf(bytes: Uint8Array, pieceBytes = bytes.length): number {
  const meter = createMp3Meter();
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    meter.push(bytes.subarray(at, at + pieceBytes));
  }
  return meter.end().durationSeconds;
}

/** A tag of version 2 with that many bytes. */
function id3(bytes: number): Buffer {
  const tag = Buffer.alloc(10 + bytes, 0xff);
  tag.set([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, bytes >> 7, bytes & 127]);
  return tag;
}

describe("the MP3 meter", () => {
  test("measures what an encoder makes, however its bytes come", async () => {
    for (const sampleRate of [24_000, 44_100] as const) {
      const mp3 = await openMp3({ sampleRate, channels: 1, bitrateKbps: 64 });
      mp3.add([Float32Array.from({ length: sampleRate * 3 }, (_, i) => Math.sin(i / 9) / 2)]);
      const bytes = mp3.finish();
      for (const pieceBytes of [1, 5, 100, 1e9]) {
        expect(secondsOf(bytes, pieceBytes)).toBeCloseTo(3, 0);
      }
    }
  });

  test("counts no tags, no padding and no frame of facts", () => {
    const frames = sampleMp3(2);
    const facts = Buffer.from(frames.subarray(0, 417));
    facts.write("Info", 36, "latin1");
    const last = Buffer.concat([Buffer.from("TAG"), Buffer.alloc(125, 0xff)]);
    const bytes = Buffer.concat([id3(300), facts, frames, Buffer.alloc(50), last]);
    const seconds = secondsOf(frames);
    expect(seconds).toBeCloseTo(2, 1);
    for (const pieceBytes of [1, 7, 64, 1e9]) expect(secondsOf(bytes, pieceBytes)).toBe(seconds);
  });

  test("allows a last frame that is cut short", () => {
    const frames = sampleMp3(2);
    expect(secondsOf(frames.subarray(0, -100))).toBe(secondsOf(frames));
  });

  test.each<[string, Buffer]>([
    ["nothing", Buffer.alloc(0)],
    ["silence that is none", Buffer.alloc(5000)],
    ["text", Buffer.from("<html>not what was asked for, though long enough</html>")],
    ["a tag alone", id3(100)],
    ["one frame", sampleMp3(2).subarray(0, 417)],
    ["a WAV", Buffer.concat([Buffer.from("RIFF....WAVEfmt "), Buffer.alloc(1000, 3)])],
    [
      "frames with something else between",
      Buffer.concat([sampleMp3(1), Buffer.from("junk that"), sampleMp3(1)]),
    ],
  ])("takes no MP3 of %s", (_, bytes) => {
    expect(() => secondsOf(bytes)).toThrow(expect.objectContaining({ fault: "failed" }));
  });
});
