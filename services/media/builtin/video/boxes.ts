/** Boxes of an MP4 that hold other boxes on the way to the times. */
const HOLDERS = new Set(["moov", "trak", "mdia"]);
/** Boxes that begin with the times of creation and change. */
const TIMED = new Set(["mvhd", "tkhd", "mdhd"]);
const HEADER_BYTES = 8;

/** Sets the times of creation and change to zero ("unknown") everywhere in an MP4, in place. */
export function clearTimes(file: Uint8Array): void {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  clearBetween(view, 0, file.byteLength);
}

function clearBetween(view: DataView, from: number, to: number): void {
  let at = from;
  while (at + HEADER_BYTES <= to) {
    const size = view.getUint32(at);
    // 0 and 1 mean "to the end" and "64-bit size": only a box of media data, the last one, has them.
    if (size < HEADER_BYTES) return;
    const type = String.fromCharCode(
      view.getUint8(at + 4),
      view.getUint8(at + 5),
      view.getUint8(at + 6),
      view.getUint8(at + 7),
    );
    if (HOLDERS.has(type)) clearBetween(view, at + HEADER_BYTES, at + size);
    if (TIMED.has(type)) {
      // A version byte and three of flags, then two times of 4 bytes (version 0) or 8.
      const wide = view.getUint8(at + HEADER_BYTES) === 1;
      const times = at + HEADER_BYTES + 4;
      for (let i = 0; i < (wide ? 16 : 8); i++) view.setUint8(times + i, 0);
    }
    at += size;
  }
}
