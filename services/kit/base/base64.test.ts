import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { base64Of, readBase64 } from "./base64.ts";

it.each([1, 2, 3, 4, 5, 100, 1001])("reads %i bytes", async (size) => {
  const bytes = randomBytes(size);
  expect(await readBase64(base64Of(bytes))).toEqual({ bytes, isCanonical: true, breaks: 0 });
});

it.each([
  ["without padding", "AAA", 2, 0],
  ["without two digits of it", "AA", 1, 0],
  ["white space within", "AA AA", 3, 0],
  ["a line break at the end", "AAAA\n", 3, 1],
  ["line breaks and tabs", "\tAA\r\nAA\f", 3, 4],
  ["white space within the padding", "AA= =", 1, 0],
  ["bits that no byte is made of", "AB==", 1, 0],
  ["bits that no byte is made of, without padding", "AAB", 2, 0],
])("takes %s", async (_, text, size, breaks) => {
  const bytes = Buffer.alloc(size);
  expect(await readBase64(text)).toEqual({ bytes, isCanonical: false, breaks });
});

it("takes either alphabet", async () => {
  const bytes = Buffer.from([0xfb, 0xff, 0xfe]);
  expect((await readBase64("+//+"))?.bytes).toEqual(bytes);
  expect(await readBase64("-__-")).toMatchObject({ bytes, isCanonical: false });
});

it.each([
  "",
  " \n",
  "A",
  "AA=",
  "A===",
  "====",
  "=AAA",
  "AA==AAAA",
  "AAAA====",
  "AA=A",
  "AAAA%3D",
  "%41AAA",
  "AAA*",
  "AAA\u0000",
  "AAA\u00a0A",
  "AAAé",
  "AAAŁ",
])("refuses %j", async (text) => {
  expect(await readBase64(text)).toBeUndefined();
});

it("finds one wrong character anywhere in a long text", async () => {
  const text = base64Of(randomBytes(600_000));
  for (const at of [0, 1, 400_001, text.length - 5]) {
    for (const wrong of ["=", "*", "é", "\u{141}", "%"]) {
      const read = await readBase64(text.slice(0, at) + wrong + text.slice(at + 1));
      expect([at, wrong, read === undefined]).toEqual([at, wrong, true]);
    }
  }
});

it("reads 20 MiB, and in lines as well", async () => {
  const bytes = randomBytes(20 * 1024 * 1024);
  const text = base64Of(bytes);
  const lines = text.replace(/.{76}/g, "$&\r\n");
  for (const [form, breaks] of [
    [text, 0],
    [lines, lines.length - text.length],
  ] as const) {
    const read = await readBase64(form);
    expect(bytes.equals(read?.bytes ?? Buffer.alloc(0))).toBe(true);
    expect(read).toMatchObject({ isCanonical: breaks === 0, breaks });
  }
});

it("takes padding at the end alone, however long the text", async () => {
  const start = `${"A".repeat(4 * 1024 * 1024 - 4)}AA==`;
  expect(await readBase64(`${start}AAAA`)).toBeUndefined();
  expect(await readBase64(`${start}\nAAAA`)).toBeUndefined();
  expect(await readBase64(start)).toBeDefined();
});
