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
  ["no suffix", "image/webp", "no suffix.webp"],
  ["Bild ä 图片 🦊.png", "image/png", "Bild ä 图片 🦊.png"],
  ["Bild ä 图片 🦊.png", "image/jpeg", "Bild ä 图片 🦊.png.jpg"],
  ['a"; filename="b.exe', "image/png", 'a"; filename="b.exe.png'],
  ["a\r\nb\u0000.png", "image/png", "ab.png"],
  ["../../b/c.png", "image/png", "c.png"],
  ["gnp.\u202etac", "image/png", "gnp.tac.png"],
  ["half \ud83d.png", "image/png", "half .png"],
  ["..hidden.png", "image/png", "hidden.png"],
  [" . .hidden.png", "image/png", "hidden.png"],
  ["🐈", "image/png", "🐈.png"],
  ["", "image/png", "file.png"],
  ["\u0000", "image/png", "file.png"],
  [".png", "image/png", "png.png"],
  ["x".repeat(300), "audio/mpeg", `${"x".repeat(200)}.mp3`],
  ["🐈".repeat(300), "image/png", `${"🐈".repeat(50)}.png`],
  [`x${"图".repeat(254)}`, "image/png", `x${"图".repeat(66)}.png`],
  ["file_1.wav", "audio/wav", "file_1.wav"],
  ["file_1.bin", "audio/opus", "file_1.bin.opus"],
  ["file_1", "audio/flac", "file_1.flac"],
  ["data", "application/x-unknown", "data.bin"],
])("%j as %s is downloaded as %j", (name, mimeType, shown) => {
  expect(downloadName(name, mimeType)).toBe(shown);
  expect(Buffer.byteLength(downloadName(name, mimeType))).toBeLessThanOrEqual(255);
});
