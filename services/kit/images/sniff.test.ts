import sharp from "sharp";
import { expect, it } from "vitest";
import { noise, ultraHdrJpeg } from "./samples.fixture.ts";
import { hasEnd, sniffFormat, sniffImage } from "./sniff.ts";

const canvas = (width = 300, height = 200, alpha = 1) =>
  sharp({ create: { width, height, channels: 4, background: { r: 9, g: 8, b: 7, alpha } } });

const samples = {
  jpeg: () => canvas().jpeg(),
  "progressive jpeg": () => canvas().jpeg({ progressive: true }),
  "jpeg with EXIF and ICC": () => canvas().jpeg().withMetadata({ orientation: 6 }),
  png: () => canvas().png(),
  "interlaced png": () => canvas().png({ progressive: true }),
  webp: () => canvas().webp(),
  "lossless webp": () => canvas().webp({ lossless: true }),
  "webp with alpha": () => canvas(300, 200, 0.5).webp(),
  "lossless webp with alpha": () => canvas(300, 200, 0.5).webp({ lossless: true }),
};

it.each(Object.entries(samples))("reads the header of a %s", async (name, make) => {
  const bytes = await make().toBuffer();
  const format = name.includes("jpeg") ? "jpeg" : name.includes("png") ? "png" : "webp";
  expect(sniffImage(bytes)).toEqual({ format, width: 300, height: 200 });
  // As a view in the middle of other bytes.
  const moved = Buffer.concat([Buffer.alloc(3), bytes, Buffer.alloc(5)]).subarray(3, -5);
  expect(sniffImage(moved)).toEqual({ format, width: 300, height: 200 });
});

it.each([
  [1, 1],
  [16383, 2],
  [3, 16383],
])("reads %i by %i in all formats", async (width, height) => {
  for (const format of ["jpeg", "png", "webp"] as const) {
    const bytes = await canvas(width, height).toFormat(format).toBuffer();
    expect(sniffImage(bytes)).toEqual({ format, width, height });
  }
});

it("gives undefined for what is no header, and never throws on a part of one", async () => {
  expect(sniffImage(new Uint8Array(0))).toBeUndefined();
  expect(sniffImage(Buffer.from("GIF89a\x01\x00\x01\x00"))).toBeUndefined();
  expect(sniffImage(Buffer.from("<svg width='1' height='1'/>"))).toBeUndefined();
  for (const make of Object.values(samples)) {
    const bytes = await make().toBuffer();
    const whole = sniffImage(bytes);
    for (let length = 0; length < Math.min(bytes.length, 400); length++) {
      const part = sniffImage(bytes.subarray(0, length));
      if (part !== undefined) expect(part).toEqual(whole);
    }
  }
});

it("walks past any number of JPEG segments and fill bytes, and ends", () => {
  const frame = Buffer.from([0xff, 0xc2, 0, 11, 8, 0, 20, 0, 30, 1, 1, 0x11, 0]);
  const comment = Buffer.from([0xff, 0xfe, 0, 3, 65]);
  const start = Buffer.from([0xff, 0xd8]);
  const long = [start, ...Array<Buffer>(10_000).fill(comment), Buffer.alloc(9, 0xff), frame];
  expect(sniffImage(Buffer.concat(long))).toEqual({ format: "jpeg", width: 30, height: 20 });
  expect(sniffImage(Buffer.concat([start, Buffer.alloc(1_000_000, 0xff)]))).toBeUndefined();
  // A segment that claims no length must not stop the walk.
  const lengthless = Buffer.concat([start, Buffer.from([0xff, 0xe0, 0, 0]), frame]);
  expect(sniffImage(lengthless)).toEqual({ format: "jpeg", width: 30, height: 20 });
});

it("takes no image of no width", async () => {
  const bytes = await canvas().png().toBuffer();
  bytes.writeUInt32BE(0, 16);
  expect(sniffFormat(bytes)).toBe("png");
  expect(sniffImage(bytes)).toBeUndefined();
});

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
