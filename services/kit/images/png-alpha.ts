// Says whether a valid PNG has alpha, from its first bytes. A mask for editing an image must have it.

const signatureBytes = 8;
/** Length and type before a chunk's data, and its checksum behind. */
const [headBytes, tailBytes] = [8, 4];
/** The colour type's place in the data of the first chunk. */
const colourTypeAt = 9;
/** Colour types with a sample of alpha in each pixel. */
const withAlpha = [4, 6];
/** Bytes in which a PNG names its transparency. Longer text before its pixels is not looked through. */
export const pngBeginningBytes = 65_536;

/** Does the beginning of a valid PNG say that its pixels have alpha? */
export function pngHasAlpha(beginning: Uint8Array): boolean {
  const bytes = Buffer.from(beginning.buffer, beginning.byteOffset, beginning.byteLength);
  for (let at = signatureBytes; at + headBytes <= bytes.length; ) {
    const type = bytes.toString("latin1", at + 4, at + headBytes);
    if (type === "tRNS") return true;
    if (type === "IDAT") return false;
    if (type === "IHDR" && withAlpha.includes(bytes[at + headBytes + colourTypeAt] ?? 0))
      return true;
    at += headBytes + bytes.readUInt32BE(at) + tailBytes;
  }
  return false;
}
