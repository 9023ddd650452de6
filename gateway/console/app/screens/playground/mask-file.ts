// Makes the PNG of a painted mask, which the API takes.

import { isPainted, type Mark, paint, type Size } from "./mask-marks.ts";

/** Pixels of a mask that are made in one turn of the page, which takes a few ms. An image may have 50 million. */
const pixelsAtOnce = 131_072;
/** Bytes of a pixel: red, green, blue, alpha. */
const pixelBytes = 4;

/**
 * The mask as the API takes it: a PNG with alpha, of the image's size, transparent where it is painted and black elsewhere. A browser's
 * own encoder would keep the page for as long as a large image takes, and some refuse a canvas of that size.
 */
export async function maskFile(marks: readonly Mark[], { width, height }: Size): Promise<Blob> {
  const rows = Math.min(height, Math.max(1, Math.floor(pixelsAtOnce / width)));
  const context = new OffscreenCanvas(width, rows).getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("This browser paints on no canvas.");
  const deflate = new CompressionStream("deflate");
  const pixels = new Response(deflate.readable).arrayBuffer();
  const writer = deflate.writable.getWriter();
  for (let top = 0; top < height; top += rows) {
    context.setTransform(1, 0, 0, 1, 0, -top);
    context.clearRect(0, 0, width, height);
    for (const mark of marks) paint(context, mark, { width, height });
    const { data } = context.getImageData(0, 0, width, Math.min(rows, height - top));
    await writer.write(linesOf(data, width));
    await new Promise((resolve) => setTimeout(resolve));
  }
  await writer.close();
  return pngOf({ width, height }, new Uint8Array(await pixels));
}

/** Rows of a PNG, each without a filter. */
function linesOf(data: Uint8ClampedArray, width: number): Uint8Array<ArrayBuffer> {
  const rowBytes = width * pixelBytes;
  const rows = data.length / rowBytes;
  const lines = new Uint8Array(rows * (1 + rowBytes));
  for (let row = 0, from = 3, to = 4; row < rows; row += 1, to += 1) {
    for (let x = 0; x < width; x += 1, from += pixelBytes, to += pixelBytes) {
      if (!isPainted(data[from])) lines[to] = 255;
    }
  }
  return lines;
}

/** A PNG of red, green, blue and alpha, 8 bits each, from its compressed rows. */
function pngOf({ width, height }: Size, pixels: Uint8Array<ArrayBuffer>): Blob {
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  header.setUint8(8, 8);
  header.setUint8(9, 6);
  const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
  const parts = [
    signature,
    ...chunkOf("IHDR", new Uint8Array(header.buffer)),
    ...chunkOf("IDAT", pixels),
    ...chunkOf("IEND", new Uint8Array()),
  ];
  return new Blob(parts, { type: "image/png" });
}

/** The length of the data, the type with the data, and the checksum of those two. */
function chunkOf(type: string, data: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const body = new Uint8Array(type.length + data.length);
  body.set(new TextEncoder().encode(type));
  body.set(data, type.length);
  return [bigEndian(data.length), body, bigEndian(crc32(body))];
}

function bigEndian(value: number): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(4));
  bytes.setUint32(0, value);
  return new Uint8Array(bytes.buffer);
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
