import { expect, test } from "vitest";
import { chanceOf, changeBytes } from "../../../../test/support/chance.ts";
import { sampleMp3 } from "../../../upstreams/media/samples.fixture.ts";
import { wavOf } from "./samples.fixture.ts";
import { measureSound } from "./sound.ts";

const second = 8_000;
const mp3 = sampleMp3(3);

test("a sound is as long as its samples or frames, and of the format of its bytes", () => {
  expect(measureSound(wavOf(3 * second))).toMatchObject({ format: "wav", seconds: 3 });
  const stereo = { channels: 2, rate: 48_000, bits: 24 };
  expect(measureSound(wavOf(288_000, stereo))).toMatchObject({ format: "wav", seconds: 1 });
  expect(measureSound(mp3)).toMatchObject({ format: "mp3", seconds: expect.closeTo(3, 1) });
});

test("is not shorter because it says so", () => {
  for (const claimed of [8, 0, 1 << 30, 0xffffffff]) {
    expect(measureSound(wavOf(3 * second, { claimed }))?.seconds).toBe(3);
  }
  const frames = Buffer.from(mp3);
  for (let at = 0; at + 40 < frames.length; at += 417) frames.write("Xing", at + 36);
  expect(measureSound(frames)?.seconds).toBeCloseTo(3, 1);
});

const none: [name: string, bytes: Buffer<ArrayBuffer>][] = [
  ["a head alone", wavOf(0)],
  ["a codec", wavOf(second, { code: 0x55 })],
  ["something between its frames", Buffer.concat([mp3, Buffer.from("noise"), mp3])],
  ["another format", Buffer.from("fLaC\0\0\0\x22")],
  ["a film's sound", Buffer.from("\0\0\0\x18ftypM4A ")],
  ["nothing", Buffer.alloc(0)],
  ["zeros", Buffer.alloc(10_000)],
];
test.for(none)("it is none with %s", ([, bytes]) => {
  expect(measureSound(bytes)).toBeUndefined();
});

test("bytes that are changed at random make no more than an answer", () => {
  const chance = chanceOf(3);
  for (let round = 0; round < 5_000; round++) {
    const bytes = Buffer.from(round % 2 ? wavOf(200) : mp3.subarray(0, 2_000));
    changeBytes(bytes, chance, 60);
    const found = measureSound(bytes.subarray(0, chance.int(bytes.length + 1)));
    if (found) expect(found.seconds).toBeGreaterThan(0);
  }
});
