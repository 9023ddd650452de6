import { maxJpegScans } from "./limits.ts";
import { type ImageFormat, startsWith } from "./sniff.ts";

/**
 * True when the file reaches the end that its format marks; more bytes may follow. Decoders stop
 * after the last pixel, and miss an end that was cut off, or notice it or not by chance.
 */
export function hasEnd(bytes: Uint8Array, format: ImageFormat): boolean {
  if (format === "png") return hasPngEnd(bytes);
  // A WebP says its length in front, and its decoder asks for all of it.
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

/** Every segment, and the coded data between them, up to the EOI marker; no more scans than an encoder makes. */
function hasJpegEnd(bytes: Uint8Array): boolean {
  let scans = 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = bytes.indexOf(0xff, 2); at >= 0; at = bytes.indexOf(0xff, at)) {
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xd9) return true;
    if (marker === 0xda && ++scans > maxJpegScans) return false;
    // 0xff before a marker fills; 0xff00 is a coded 0xff; D0 to D8 and 01 stand alone.
    const isBare = marker === 0 || marker === 1 || (marker >= 0xd0 && marker <= 0xd8);
    if (marker === 0xff) at += 1;
    else if (isBare) at += 2;
    else if (at + 4 > bytes.length) return false;
    else at += 2 + Math.max(2, view.getUint16(at + 2));
  }
  return false;
}
