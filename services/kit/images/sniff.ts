// Reads the format and size of an image from its header, and refuses by them before anything is decoded.

import { isFrame, readJpeg } from "./jpeg.ts";
import { maxJpegScans } from "./limits.ts";
import { ImageError, type ImageRules } from "./protocol.ts";

/** The formats that are accepted anywhere. */
export type ImageFormat = "jpeg" | "png" | "webp";

/** Their media types. */
export const imageMimeTypes: Record<ImageFormat, "image/jpeg" | "image/png" | "image/webp"> = {
  jpeg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
};

/** The facts in a header: pixels as stored, before any EXIF orientation. */
export type ImageHeader = {
  readonly format: ImageFormat;
  readonly width: number;
  readonly height: number;
};

type Size = Omit<ImageHeader, "format">;

/** The format by the first bytes, or undefined. The other bytes are not checked. */
export function sniffFormat(bytes: Uint8Array): ImageFormat | undefined {
  if (startsWith(bytes, 0, "\xff\xd8\xff")) return "jpeg";
  if (startsWith(bytes, 0, "\x89PNG\r\n\x1a\n")) return "png";
  return startsWith(bytes, 0, "RIFF") && startsWith(bytes, 8, "WEBP") ? "webp" : undefined;
}

/**
 * Format and size as the header claims them, or undefined where there is no such header. Reads a few bytes (of a JPEG, those of each
 * segment's head) and decodes nothing. It is an estimate, no proof.
 */
export function sniffImage(bytes: Uint8Array): ImageHeader | undefined {
  const format = sniffFormat(bytes);
  if (format === undefined) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = sizeReaders[format](bytes, view);
  return size === undefined || size.width < 1 || size.height < 1 ? undefined : { format, ...size };
}

const sizeReaders: Record<ImageFormat, (bytes: Uint8Array, view: DataView) => Size | undefined> = {
  jpeg: jpegSize,
  png: pngSize,
  webp: webpSize,
};

function pngSize(bytes: Uint8Array, view: DataView): Size | undefined {
  if (bytes.length < 24 || !startsWith(bytes, 12, "IHDR")) return undefined;
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

/** The first frame header. */
function jpegSize(bytes: Uint8Array, view: DataView): Size | undefined {
  let at = 2;
  while (at + 9 <= bytes.length) {
    const marker = bytes[at + 1] ?? 0;
    if (bytes[at] !== 0xff) return undefined;
    if (isFrame(marker)) {
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    }
    if (marker === 0xd9 || marker === 0xda) return undefined;
    const isBare = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    // Any number of 0xff bytes may come before a marker.
    at += marker === 0xff ? 1 : isBare ? 2 : 2 + Math.max(2, view.getUint16(at + 2));
  }
  return undefined;
}

function webpSize(bytes: Uint8Array, view: DataView): Size | undefined {
  if (bytes.length < 30) return undefined;
  if (startsWith(bytes, 12, "VP8X")) {
    return { width: 1 + uint24(view, 24), height: 1 + uint24(view, 27) };
  }
  if (startsWith(bytes, 12, "VP8L") && bytes[20] === 0x2f) {
    const bits = view.getUint32(21, true);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  // The start code of a key frame. A delta frame has no size.
  const isFrame = startsWith(bytes, 12, "VP8 ") && startsWith(bytes, 23, "\x9d\x01\x2a");
  if (!isFrame) return undefined;
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}

function uint24(view: DataView, at: number): number {
  return view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
}

/** True when the bytes at a place are these, one character a byte. */
function startsWith(bytes: Uint8Array, at: number, signature: string): boolean {
  for (let index = 0; index < signature.length; index++) {
    if (bytes[at + index] !== signature.charCodeAt(index)) return false;
  }
  return true;
}

/**
 * Refuses an image by its size, its first bytes and its header's claims, before anything is decoded. Answers the format. It is cheap,
 * so it runs before an image goes to a decoder, and again there.
 */
export function checkHeader(bytes: Uint8Array, rules: ImageRules): ImageFormat {
  if (bytes.length > rules.maxBytes) throw new ImageError("too_large");
  const format = sniffFormat(bytes);
  if (format === undefined || !rules.accept.includes(format)) {
    throw new ImageError("unsupported_format");
  }
  const claimed = sniffImage(bytes);
  if (claimed !== undefined && claimed.width * claimed.height > rules.maxPixels) {
    throw new ImageError("too_many_pixels");
  }
  return format;
}

/**
 * True when the file reaches the end that its format marks. More bytes may follow. Decoders stop after the last pixel, so they notice a
 * missing end only by chance.
 */
export function hasEnd(bytes: Uint8Array, format: ImageFormat): boolean {
  if (format === "png") return hasPngEnd(bytes);
  // A WebP has its length in front, and its decoder reads all of it.
  return format === "webp" || hasJpegEnd(bytes);
}

/** Every chunk up to `IEND` with its checksum. */
function hasPngEnd(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 8; at + 12 <= bytes.length; at += 12 + view.getUint32(at)) {
    if (startsWith(bytes, at + 4, "IEND")) return at + 12 + view.getUint32(at) <= bytes.length;
  }
  return false;
}

/** Has no more scans than an encoder makes. */
function hasJpegEnd(bytes: Uint8Array): boolean {
  const { hasEnd, scans } = readJpeg(bytes);
  return hasEnd && scans <= maxJpegScans;
}
