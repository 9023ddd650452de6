import { expect, it } from "vitest";
import { hasEnd } from "./ends.ts";
import { noise, ultraHdrJpeg } from "./samples.fixture.ts";

const whole = {
  jpeg: () => noise().jpeg(),
  "jpeg, progressive": () => noise().jpeg({ progressive: true }),
  "jpeg, with EXIF": () => noise().jpeg().withMetadata({ orientation: 6 }),
  png: () => noise().png(),
  "png, interlaced": () => noise().png({ progressive: true }),
};

it.each(Object.entries(whole))(
  "finds the end of a %s, and misses the last byte",
  async (name, make) => {
    const bytes = await make().toBuffer();
    const format = name.startsWith("jpeg") ? "jpeg" : "png";
    expect(hasEnd(bytes, format)).toBe(true);
    expect(hasEnd(Buffer.concat([bytes, Buffer.from("more")]), format)).toBe(true);
    expect(hasEnd(Buffer.concat([Buffer.alloc(3), bytes]).subarray(3), format)).toBe(true);
    for (let cut = 1; cut < bytes.length; cut += cut < 100 ? 1 : 97) {
      expect([cut, hasEnd(bytes.subarray(0, -cut), format)]).toEqual([cut, false]);
    }
  },
);

it("takes no end inside a segment or the coded data for the end of a JPEG", () => {
  const start = [0xff, 0xd8];
  const preview = [0xff, 0xe1, 0, 8, 0xff, 0xd8, 0xff, 0xd9, 0, 0];
  const scan = [0xff, 0xda, 0, 2, 1, 0xff, 0, 0xd9, 0xff, 0xd0, 2, 0xff, 0xff];
  expect(hasEnd(Uint8Array.from([...start, ...preview, ...scan]), "jpeg")).toBe(false);
  expect(hasEnd(Uint8Array.from([...start, ...preview, ...scan, 0xd9]), "jpeg")).toBe(true);
  expect(hasEnd(Uint8Array.from([...start, 0xff, 0xe1, 0]), "jpeg")).toBe(false);
});

it("finds the end of the first image where another follows", async () => {
  const { bytes, base } = await ultraHdrJpeg();
  expect(hasEnd(bytes.subarray(0, base), "jpeg")).toBe(true);
  expect(hasEnd(bytes.subarray(0, base - 1), "jpeg")).toBe(false);
});
