import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { parseDataUri } from "./data-uri.ts";

const uriOf = (bytes: Buffer) => `data:image/png;base64,${bytes.toString("base64")}`;

it.each([1, 2, 3, 4, 5, 100, 1001])("reads %i bytes", async (size) => {
  const bytes = randomBytes(size);
  expect(await parseDataUri(uriOf(bytes))).toEqual({ mimeType: "image/png", bytes });
});

it("reads scheme, type and encoding without case", async () => {
  expect(await parseDataUri("DATA:Image/JPEG;Base64,AAAA")).toEqual({
    mimeType: "image/jpeg",
    bytes: Buffer.alloc(3),
  });
  expect((await parseDataUri("data:image/svg+xml;base64,AAAA"))?.mimeType).toBe("image/svg+xml");
});

it.each([
  "",
  "data:",
  "data:,",
  "data:image/png;base64,",
  "data:image/png,AAAA",
  "data:;base64,AAAA",
  "data:text/html;base64,AAAA",
  "data:image/;base64,AAAA",
  "data:image/png;charset=utf-8;base64,AAAA",
  "data:image/png;base64;base64,AAAA",
  "data:image/png; base64,AAAA",
  " data:image/png;base64,AAAA",
  "xdata:image/png;base64,AAAA",
  "https://example.com/a.png",
  "data:image/png;base64,AAA",
  "data:image/png;base64,AA",
  "data:image/png;base64,AA=",
  "data:image/png;base64,A===",
  "data:image/png;base64,====",
  "data:image/png;base64,AA==AAAA",
  "data:image/png;base64,AAAA====",
  "data:image/png;base64,AA=A",
  "data:image/png;base64,AAAA AAA",
  "data:image/png;base64,AAAA\nAAA",
  "data:image/png;base64,AAAAAAA\n",
  "data:image/png;base64, AAA",
  "data:image/png;base64,AAAA%3D%3D",
  "data:image/png;base64,%41AAA",
  "data:image/png;base64,AA-A",
  "data:image/png;base64,AA_A",
  "data:image/png;base64,AAA*",
  "data:image/png;base64,AAA\u0000",
  "data:image/png;base64,AAAé",
  "data:image/png;base64,AAAŁ",
  "data:image/png;base64,AB==",
  "data:image/png;base64,AAB=",
  "data:image/png;base64,AAAA#a",
])("refuses %j", async (uri) => {
  expect(await parseDataUri(uri)).toBeUndefined();
});

it("finds one wrong character anywhere in a long text", async () => {
  const uri = uriOf(randomBytes(100_000));
  const start = uri.indexOf(",") + 1;
  for (const at of [start, start + 1, start + 66_667, uri.length - 5]) {
    for (const wrong of [" ", "-", "_", "=", "\n", "é", "\u{141}"]) {
      const read = await parseDataUri(uri.slice(0, at) + wrong + uri.slice(at + 1));
      expect([at, wrong, read === undefined]).toEqual([at, wrong, true]);
    }
  }
});

it("reads 20 MiB", async () => {
  const bytes = randomBytes(20 * 1024 * 1024);
  const read = (await parseDataUri(uriOf(bytes)))?.bytes ?? Buffer.alloc(0);
  expect(bytes.equals(read)).toBe(true);
});

it("takes padding at the end alone, however long the text", async () => {
  const start = `${"A".repeat(4 * 1024 * 1024 - 4)}AA==`;
  expect(await parseDataUri(`data:image/png;base64,${start}AAAA`)).toBeUndefined();
  expect(await parseDataUri(`data:image/png;base64,${start}`)).toBeDefined();
});
