// Images that tests decode, good and hostile ones.

import { crc32, deflateSync } from "node:zlib";
import sharp, { type Sharp } from "sharp";

/** Noise, so that the bytes of the image spread over the whole file. It is the same every time. */
export function noise(width = 120, height = 80): Sharp {
  let seed = 1;
  const pixels = Uint8Array.from({ length: width * height * 3 }, () => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed >> 16;
  });
  return sharp(pixels, { raw: { width, height, channels: 3 } });
}

/** One colour, quick to make and small at any size. */
export function plain(width: number, height: number): Sharp {
  return sharp({ create: { width, height, channels: 3, background: "#456" } });
}

/** A WebP of two frames. */
export async function animatedWebp(): Promise<Buffer> {
  const frames = [await noise().png().toBuffer(), await plain(120, 80).png().toBuffer()];
  return sharp(frames, { join: { animated: true } })
    .webp({ delay: [100, 100] })
    .toBuffer();
}

/** A JPEG with a gain map behind it, and the place where the JPEG itself ends. */
export async function ultraHdrJpeg(): Promise<{ bytes: Buffer; base: number }> {
  const image = sharp(await noise().png().toBuffer());
  // sharp has this function, but its types do not.
  const withGainMap: unknown = Reflect.get(image, "withGainMap");
  if (typeof withGainMap === "function") withGainMap.call(image);
  const bytes = await image.jpeg().toBuffer();
  const base = bytes.indexOf(Buffer.from([0xff, 0xd9, 0xff, 0xd8])) + 2;
  return { bytes, base };
}

/** A PNG of two frames: a still one with the control chunks of an animation. */
export async function animatedPng(): Promise<Buffer> {
  const still = await noise().png().toBuffer();
  const control = Buffer.alloc(26);
  control.writeUInt32BE(120, 4);
  control.writeUInt32BE(80, 8);
  const second = Buffer.from(control);
  second.writeUInt32BE(1, 0);
  const pixels = Buffer.concat([Buffer.of(0, 0, 0, 2), deflateSync(Buffer.alloc(80 * 361))]);
  const end = still.length - 12;
  return Buffer.concat([
    still.subarray(0, 33),
    pngChunk("acTL", Buffer.of(0, 0, 0, 2, 0, 0, 0, 0)),
    pngChunk("fcTL", control),
    still.subarray(33, end),
    pngChunk("fcTL", second),
    pngChunk("fdAT", pixels),
    still.subarray(end),
  ]);
}

/** Puts a chunk behind the header of a PNG. */
export function withPngChunk(png: Buffer, type: string, data: Buffer): Buffer {
  return Buffer.concat([png.subarray(0, 33), pngChunk(type, data), png.subarray(33)]);
}

/** A whole chunk with length and checksum. */
export function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(body.length + 8);
  frame.writeUInt32BE(data.length, 0);
  body.copy(frame, 4);
  frame.writeUInt32BE(crc32(body), body.length + 4);
  return frame;
}

/** A PNG's header with another size and the right checksum. */
export function withPngSize(png: Buffer, width: number, height: number): Buffer {
  const header = Buffer.from(png.subarray(16, 29));
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  return Buffer.concat([png.subarray(0, 8), pngChunk("IHDR", header), png.subarray(33)]);
}

/** A black PNG of a bit a pixel. `chunksOf` may lay out its compressed data. */
export function plainPng(
  width: number,
  height: number,
  chunksOf = (data: Buffer) => pngChunk("IDAT", data),
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const data = deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height), { level: 1 });
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    pngChunk("IHDR", header),
    chunksOf(data),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A PNG of a few pixels with `bytes` of text that unpacks to 8 MB again and again. */
export async function textBombPng(bytes: number): Promise<Buffer> {
  const text = deflateSync(Buffer.alloc(7_900_000), { level: 9 });
  const chunk = pngChunk("zTXt", Buffer.concat([Buffer.from("Comment\0\0"), text]));
  const png = await plain(3, 3).png().toBuffer();
  const chunks = new Array<Buffer>(Math.floor(bytes / chunk.length)).fill(chunk);
  return Buffer.concat([png.subarray(0, 33), ...chunks, png.subarray(33)]);
}

/** A black progressive JPEG. Each of its scans, of some 60 bytes, changes no pixel. */
export function jpegOfScans(width: number, height: number, scans: number): Buffer {
  const segment = (marker: number, ...data: number[]) =>
    Buffer.from([0xff, marker, 0, data.length + 2, ...data]);
  const table = (place: number, symbol: number) =>
    segment(0xc4, place, 1, ...new Array<number>(15).fill(0), symbol);
  const blocks = Math.ceil(width / 8) * Math.ceil(height / 8);
  // The run's symbol is one bit, 0. 14 further bits hold its length beyond 16384 blocks.
  const runs = Array.from({ length: Math.ceil(blocks / 32_767) }, () => `0${"1".repeat(14)}`);
  const bits = runs.join("").padEnd(Math.ceil((runs.length * 15) / 8) * 8, "1");
  const coded = (bits.match(/.{8}/g) ?? []).flatMap((byte) =>
    byte === "11111111" ? [255, 0] : [Number.parseInt(byte, 2)],
  );
  const parts = [
    Buffer.of(0xff, 0xd8),
    segment(0xdb, 0, ...new Array<number>(64).fill(1)),
    segment(0xc2, 8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0),
    table(0x00, 0),
    table(0x10, 0xe0),
    segment(0xda, 1, 1, 0, 0, 0, 0),
    Buffer.alloc(Math.ceil(blocks / 8)),
  ];
  for (let scan = 1; scan < scans; scan++) {
    const coefficient = 1 + ((scan - 1) % 63);
    const depth = 13 - Math.min(13, Math.floor((scan - 1) / 63));
    const bits = depth === 13 ? depth : ((depth + 1) << 4) | depth;
    parts.push(segment(0xda, 1, 1, 0, coefficient, coefficient, bits), Buffer.from(coded));
  }
  return Buffer.concat([...parts, Buffer.of(0xff, 0xd9)]);
}
