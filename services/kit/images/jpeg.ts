// Reads the segments of a JPEG, and cuts a large one of several scans down, so that its decoding takes little memory.

import { leastStripRows, stripPixels } from "./limits.ts";
import { ImageError } from "./protocol.ts";

/** The layout of a JPEG, up to its end. */
export interface JpegLayout {
  /** The place of the first frame header. Undefined: there is none. */
  readonly frameAt: number | undefined;
  /** Scans. Each covers some components, or some bits of all pixels. */
  readonly scans: number;
  /** Is there an EOI marker? More bytes may follow it. */
  readonly hasEnd: boolean;
}

/** Reads every segment, and skips the coded data between them, up to the EOI marker. Garbage is passed over as libjpeg does. */
export function readJpeg(bytes: Uint8Array): JpegLayout {
  const view = viewOf(bytes);
  let frameAt: number | undefined;
  let scans = 0;
  for (let at = bytes.indexOf(0xff, 2); at >= 0; at = bytes.indexOf(0xff, at)) {
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xd9) return { frameAt, scans, hasEnd: true };
    if (marker === 0xda) scans++;
    if (isFrame(marker)) frameAt ??= at;
    // 0xff before a marker is filling, and 0xff00 is a coded 0xff. D0 to D8 and 01 have no length behind them.
    const isBare = marker === 0 || marker === 1 || (marker >= 0xd0 && marker <= 0xd8);
    if (marker === 0xff) at += 1;
    else if (isBare) at += 2;
    else if (at + 4 > bytes.length) break;
    else at += 2 + Math.max(2, view.getUint16(at + 2));
  }
  return { frameAt, scans, hasEnd: false };
}

/** SOF0 to SOF15 without the three codes that mean something else. */
export function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/**
 * Changes a large JPEG of several scans in place, so that it seems to end after its first rows. Answers the number of its rows then.
 * libjpeg keeps all coefficients of such an image until its last scan is read, 2 bytes for each pixel and component. Of the shortened
 * image it still reads every segment, table and scan header to the end of the file. Of each scan it reads the pixels of those rows.
 * Wrong codes below them pass unseen, as a few do in an image that is decoded whole. An image of one scan is not changed: of that
 * libjpeg keeps one row of blocks. Throws `ImageError` where the decoder took the size from another place.
 */
export function cutToStrip(bytes: Uint8Array, size: { width: number; height: number }): number {
  const { width, height } = size;
  const { frameAt, scans } = readJpeg(bytes);
  if (frameAt === undefined || frameAt + 9 > bytes.length) throw new ImageError("corrupt");
  const view = viewOf(bytes);
  if (view.getUint16(frameAt + 5) !== height || view.getUint16(frameAt + 7) !== width) {
    throw new ImageError("corrupt");
  }
  const isProgressive = [0xc2, 0xca].includes(bytes[frameAt + 1] ?? 0);
  const rows = Math.max(leastStripRows, Math.floor(stripPixels / width));
  if (!(isProgressive || scans > 1) || height <= rows) return height;
  view.setUint16(frameAt + 5, rows);
  return rows;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
