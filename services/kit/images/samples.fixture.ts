import { crc32, deflateSync } from "node:zlib";
import sharp, { type Sharp } from "sharp";

/** Noise, so that the bytes of the picture spread over the whole file. The same every time. */
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

/** A JPEG with a gain map behind it, and where the JPEG proper ends. */
export async function ultraHdrJpeg(): Promise<{ bytes: Buffer; base: number }> {
  const image = sharp(await noise().png().toBuffer());
  // In sharp, but not in its types.
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

/** A PNG's header with another size, its checksum made good. */
export function withPngSize(png: Buffer, width: number, height: number): Buffer {
  const header = Buffer.from(png.subarray(16, 29));
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  return Buffer.concat([png.subarray(0, 8), pngChunk("IHDR", header), png.subarray(33)]);
}
