import { expect, test } from "vitest";
import { downloadName, keptName } from "./names.ts";

test.each([
  ["cat.png", "cat.png"],
  ["Katze 🐈.png", "Katze 🐈.png"],
  ["../../etc/passwd", "passwd"],
  ["C:\\Users\\me\\cat.png", "cat.png"],
  ["a\u0000b\r\nc.png", "abc.png"],
  ["gnp.\u202etac", "gnp.tac"],
  ["half \ud83d.png", "half .png"],
  ["", "upload"],
  ["folder/", "upload"],
  ["..", "upload"],
  [" \t ", "upload"],
])("%j is kept as %j", (name, kept) => {
  expect(keptName(name)).toBe(kept);
});

test("a long name is cut between characters", () => {
  const name = keptName("🐈".repeat(300));
  expect([...name]).toHaveLength(255);
  expect(name.isWellFormed()).toBe(true);
});

test.each([
  ["cat.png", "image/png", "cat.png"],
  ["cat.JPEG", "image/jpeg", "cat.jpeg"],
  ["evil.html", "image/png", "evil.html.png"],
  ["no suffix", "image/webp", "no_suffix.webp"],
  ['a"; filename="b.exe', "image/png", "a_filename_b.exe.png"],
  ["..hidden.png", "image/png", "hidden.png"],
  ["🐈", "image/png", "file.png"],
  [".png", "image/png", "png.png"],
  ["x".repeat(300), "audio/mpeg", `${"x".repeat(100)}.mp3`],
  ["file_1.wav", "audio/wav", "file_1.wav"],
  ["file_1.bin", "audio/opus", "file_1.bin.opus"],
  ["file_1", "audio/flac", "file_1.flac"],
  ["data", "application/x-unknown", "data.bin"],
])("%j as %s is downloaded as %j", (name, mimeType, safe) => {
  expect(downloadName(name, mimeType)).toBe(safe);
  expect(downloadName(name, mimeType)).toMatch(/^[A-Za-z0-9_-][A-Za-z0-9._-]*$/);
});
