import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { haveFfmpeg } from "../../builtin/testing/ffmpeg.ts";
import { sampleMp3, sampleSound } from "../../upstreams/media/samples.fixture.ts";
import { soundFormats } from "./formats.ts";
import { secondsOf } from "./seconds.ts";

const measured = soundFormats.filter((format) => format !== "mp3");
/** Formats by which the bytes can be measured. */
const formatsOf = (bytes: Uint8Array) =>
  measured.filter((format) => secondsOf(bytes, format) !== undefined);

test.each(measured)("%s is as long as it sounds, and nothing else", (format) => {
  const sound = sampleSound(format, 3);
  expect(secondsOf(sound, format)).toBeCloseTo(3, 0);
  expect(formatsOf(sound)).toEqual([format]);
});

test.each([
  ["nothing", Buffer.alloc(0)],
  ["JSON", Buffer.from('{"error":{"message":"no sound at all"}} ')],
  ["an MP3", sampleMp3(1)],
  ["an MP3 behind a tag", Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\0\0"), sampleMp3(1)])],
  ["half a sample", Buffer.alloc(999)],
  [
    "Vorbis",
    Buffer.from(sampleSound("opus").toString("latin1").replace("OpusHead", "\x01vorbis1")),
  ],
  ["a WAV without samples", sampleSound("wav", 0)],
  ["AAC that is cut", sampleSound("aac").subarray(0, -3)],
])("%s is none of them", (_, bytes) => {
  expect(formatsOf(bytes)).toEqual([]);
});

describe.runIf(haveFfmpeg())("what encoders make", () => {
  const asked = {
    opus: ["-ar", "48000", "-c:a", "libopus", "-f", "ogg"],
    aac: ["-f", "adts"],
    flac: ["-f", "flac"],
    wav: ["-f", "wav"],
    pcm: ["-f", "s16le"],
  };
  test.each(measured)("%s", (format) => {
    // The same noise each time. In one of a hundred noises some bytes look like the head of a FLAC frame, which then counts too.
    const noise = ["-f", "lavfi", "-i", "anoisesrc=duration=3:amplitude=0.3:seed=7", "-ac", "1"];
    const args = ["-v", "error", ...noise, "-ar", "24000", ...asked[format], "-"];
    const sound = execFileSync("ffmpeg", args, { maxBuffer: 2 ** 24 });
    expect(secondsOf(sound, format)).toBeCloseTo(3, 0);
    expect(formatsOf(sound)).toEqual([format]);
  });
});
