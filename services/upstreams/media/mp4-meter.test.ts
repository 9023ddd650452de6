import { describe, expect, test } from "vitest";
import { createMp4Meter } from "./mp4-meter.ts";
import { mp4Box, type SampleVideo, sampleMp4 } from "./samples.fixture.ts";

/** Measures bytes that come in pieces. */
function measure(bytes: Buffer, { asked = 6, pieceBytes = bytes.length } = {}) {
  const meter = createMp4Meter(asked);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    meter.push(bytes.subarray(at, at + pieceBytes));
  }
  return meter.end();
}

/** The place of a box's first byte. */
function placeOf(bytes: Buffer, type: string): number {
  return bytes.indexOf(type, 0, "latin1") - 4;
}

describe("the MP4 meter", () => {
  const facts = { width: 320, height: 180, durationSeconds: 6 };

  test.each<[string, Partial<SampleVideo>]>([
    ["index first", {}],
    ["index last", { isIndexLast: true }],
    ["fragmented", { isFragmented: true }],
  ])("measures a video, %s, however its bytes come", (_, asked) => {
    for (const pieceBytes of [1, 3, 8, 1000, 1e9]) {
      expect(measure(sampleMp4(asked), { pieceBytes })).toEqual(facts);
    }
  });

  test("reads sizes and lengths from the index", () => {
    const asked = { seconds: 15, width: 1920, height: 1080, codec: "hvc1" };
    expect(measure(sampleMp4(asked), { asked: 15 })).toEqual({
      width: 1920,
      height: 1080,
      durationSeconds: 15,
    });
  });

  test("reads boxes with long sizes and one without end", () => {
    const whole = sampleMp4();
    const media = placeOf(whole, "mdat");
    const long = Buffer.alloc(16);
    long.writeUInt32BE(1, 0);
    long.write("mdat", 4, "latin1");
    long.writeBigUInt64BE(BigInt(whole.length - media + 8), 8);
    const head = whole.subarray(0, media);
    const body = whole.subarray(media + 8);
    expect(measure(Buffer.concat([head, long, body]), { pieceBytes: 5 })).toEqual(facts);
    const endless = Buffer.from(whole);
    endless.writeUInt32BE(0, media);
    expect(measure(endless)).toEqual(facts);
  });

  test("takes no video that is cut anywhere", () => {
    for (const asked of [{}, { isIndexLast: true }]) {
      const whole = sampleMp4(asked);
      for (let bytes = 0; bytes < whole.length; bytes += 97) {
        expect(() => measure(whole.subarray(0, bytes))).toThrow();
      }
    }
    const endless = sampleMp4();
    endless.writeUInt32BE(0, placeOf(endless, "mdat"));
    expect(() => measure(endless.subarray(0, -1))).toThrow("breaks off");
  });

  test.each<[string, Buffer]>([
    ["text", Buffer.from("<html>no video here, but long enough</html>")],
    ["JSON", Buffer.from(JSON.stringify({ error: { message: "no such file" } }))],
    ["nothing", Buffer.alloc(0)],
    ["no index", Buffer.concat([mp4Box("ftyp"), mp4Box("mdat", Buffer.alloc(99))])],
    ["an empty index", Buffer.concat([mp4Box("ftyp"), mp4Box("moov"), mp4Box("mdat")])],
    ["an unknown codec", sampleMp4({ codec: "mjpg" })],
    ["no size", sampleMp4({ width: 0 })],
    ["an enormous size", sampleMp4({ width: 9000 })],
    ["no frames", sampleMp4({ seconds: 0 })],
    ["less than half of what was asked for", sampleMp4({ seconds: 2 })],
    ["an endless film", sampleMp4({ seconds: 601, frameBytes: 1 })],
  ])("takes no video of %s", (_, bytes) => {
    expect(() => measure(bytes)).toThrow(expect.objectContaining({ fault: "failed" }));
  });

  test("survives any damage to the index", () => {
    const whole = sampleMp4({ seconds: 3 });
    const end = placeOf(whole, "mdat");
    for (let at = 0; at < end; at++) {
      for (const value of [0, 0xff]) {
        const damaged = Buffer.from(whole);
        damaged[at] = value;
        try {
          measure(damaged, { asked: 3 });
        } catch (error) {
          expect(error).toMatchObject({ name: "GenerationError", fault: "failed" });
        }
      }
    }
  });
});
