// Finds where the tag in front of an audio file ends, so that what follows can be measured.

/** The end of the tag that any audio may begin with. */
export function endOfId3(bytes: Buffer, at = 0): number {
  if (bytes.toString("latin1", at, at + 3) !== "ID3" || bytes.length < at + 10) return at;
  // With such bytes decoders take it for no tag, and play it.
  const isTag = bytes[at + 3] !== 0xff && bytes[at + 4] !== 0xff;
  if (!isTag || [6, 7, 8, 9].some((place) => (bytes[at + place] ?? 0) > 127)) return at;
  // Seven bits a byte. A footer repeats the head.
  const size = [6, 7, 8, 9].reduce((sum, place) => sum * 128 + ((bytes[at + place] ?? 0) & 127), 0);
  const hasFooter = ((bytes[at + 5] ?? 0) & 0x10) !== 0;
  return at + 10 + size + (hasFooter ? 10 : 0);
}
