import { expect, it } from "vitest";
import { textOf } from "#kit/base/base64.ts";
import { isDataUri, isTooLong, readDataUri, readImageUri } from "./data-uri.ts";

it("reads scheme, type and encoding without case", async () => {
  expect(await readImageUri("DATA:Image/JPEG;Base64,AAAA")).toMatchObject({
    mimeType: "image/jpeg",
    bytes: Buffer.alloc(3),
    isCanonical: true,
  });
  expect((await readImageUri("data:image/svg+xml;base64,AAAA"))?.mimeType).toBe("image/svg+xml");
});

it("reads any type where none is asked for", async () => {
  const uri = "data:application/pdf;base64,AAAA";
  expect((await readDataUri(uri))?.mimeType).toBe("application/pdf");
  expect(await readImageUri(uri)).toBeUndefined();
});

it.each(["data:;base64,AAAA", "data:nonsense;base64,AAAA", "data: ; base64,AAAA"])(
  "reads %j where its type does not count",
  async (uri) => {
    expect((await readDataUri(uri, { anyType: true }))?.bytes).toEqual(Buffer.alloc(3));
    expect(await readDataUri(uri)).toBeUndefined();
    expect(await readDataUri(uri.replace("base64", ""), { anyType: true })).toBeUndefined();
  },
);

it("reads one that lies in memory as bytes, as it would read the string", async () => {
  const bytes = Buffer.alloc(300_001, 250);
  for (const digits of [bytes.toString("base64"), bytes.toString("base64url")]) {
    for (const uri of [
      `data:image/png;base64,${digits}`,
      ` data:image/png;x=y;base64,${digits.replace(/.{76}/g, "$&%0A\n")}`,
    ]) {
      const read = await readDataUri(textOf(Buffer.from(uri)));
      expect(read && Buffer.compare(read.bytes, bytes)).toBe(0);
      expect(read).toEqual(await readDataUri(uri));
    }
  }
  expect(await readDataUri(textOf(Buffer.from("data:image/png;base64,AA*A")))).toBeUndefined();
});

it.each([
  "data:image/png;charset=utf-8;base64,AAAA",
  "data:image/png;name=fox.png;base64,AAAA",
  'data:image/png;a="b c";d;base64,AAAA',
  "data:image/png;base64;base64,AAAA",
  "data:image/png; base64 ,AAAA",
  "data: image/png;base64,AAAA",
  " data:image/png;base64,AAAA",
  "\r\n\tdata:image/png;base64,AAAA",
  "data:image/png;base64,%41AA%41",
  "data:image/png;base64,AA%0D%0AAA",
  "data:image/png;base64,%0a%20AAAA%0a",
])("reads %j", async (uri) => {
  expect((await readImageUri(uri))?.bytes).toEqual(Buffer.alloc(3));
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
  "data:image/png/x;base64,AAAA",
  "data:image/png;base64;charset=utf-8,AAAA",
  "data:image/png;base65,AAAA",
  "data:image/png;base64",
  "xdata:image/png;base64,AAAA",
  "https://example.com/a.png",
  "data:image/png;base64,AAAA%",
  "data:image/png;base64,AAAA%4",
  "data:image/png;base64,AAAA%zz",
  "data:image/png;base64,AAAA#a",
  `data:image/png;name=${"x".repeat(2_000)};base64,AAAA`,
])("refuses %j", async (uri) => {
  expect(await readImageUri(uri)).toBeUndefined();
});

it("finds an escape wherever a long text is cut", async () => {
  // Longer than the part that is cleaned at once, with its escapes at every place of the cut.
  for (const before of ["", "AA", "AAAA"]) {
    const escaped = before + "%41".repeat(100_000);
    const read = await readImageUri(`data:image/png;base64,${escaped}`);
    expect(read?.bytes.length).toBe(Math.floor(((before.length + 100_000) * 3) / 4));
    expect(read?.bytes.every((byte) => byte === 0)).toBe(true);
  }
});

it("tells data URIs, and those that need not be read", () => {
  expect([" data:", "DATA:x", "\ndata:"].every(isDataUri)).toBe(true);
  expect(["", "xdata:", "https://a.b/data:"].some(isDataUri)).toBe(false);
  const bytes = 300_000;
  const uri = `data:image/png;base64,${"A\n".repeat((bytes / 3) * 4)}`;
  expect(isTooLong(uri, bytes)).toBe(false);
  expect(isTooLong(uri + uri, bytes)).toBe(true);
});
