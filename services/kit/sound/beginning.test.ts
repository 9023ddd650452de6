import { expect, test } from "vitest";
import { sampleSound } from "../../upstreams/media/samples.fixture.ts";
import { beginningBytes, beginsAs } from "./beginning.ts";
import { soundFormats } from "./formats.ts";

const formatsOf = (bytes: Uint8Array) =>
  soundFormats.filter((format) => beginsAs(bytes.subarray(0, beginningBytes), format));

test.each(soundFormats)("%s begins as itself, and as nothing else", (format) => {
  const found = formatsOf(sampleSound(format));
  // Frames of MP3 and AAC have no name, and could be samples for some bytes.
  expect(found.filter((one) => one === format || one !== "pcm")).toEqual([format]);
});

test.each([
  ["JSON", '{"error":{"message":"none"}}'],
  ["JSON behind space", '[ {"detail":"none"} ]'],
  ["a page", "<!doctype html><p>none</p>"],
])("%s begins no sound", (_, text) => {
  expect(formatsOf(Buffer.from(text))).toEqual([]);
});

test("a tag may stand before MP3 and AAC alone", () => {
  expect(formatsOf(Buffer.from("ID3\x04\0\0\0\0\0\0\0\0"))).toEqual(["mp3", "aac"]);
});
