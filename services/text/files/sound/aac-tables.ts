/**
 * Huffman codes of AAC's spectrum (ISO 14496-3, 4.A.1), books 1 to 11. Codes of one length follow each other, and go on from the
 * shorter ones, so that their numbers say all.
 */
export const spectrumBooks: readonly SpectrumBook[] = [
  { values: 4, counts: [1, 0, 0, 0, 8, 0, 24, 0, 24, 8, 16], signs: "" },
  { values: 4, counts: [0, 0, 1, 1, 7, 24, 15, 19, 14], signs: "" },
  {
    values: 4,
    counts: [1, 0, 0, 4, 2, 6, 3, 5, 15, 15, 8, 9, 3, 3, 5, 2],
    signs: "011112222232343311223232331221224334323244332333223243344233333344442233434443233",
  },
  {
    values: 4,
    counts: [0, 0, 0, 10, 6, 0, 9, 21, 8, 14, 11, 2],
    signs: "433331202222121144443333333333332222222222221111444444333333333433344422222243333",
  },
  { values: 2, counts: [1, 0, 0, 4, 4, 0, 4, 12, 12, 12, 18, 10, 4], signs: "" },
  { values: 2, counts: [0, 0, 0, 9, 0, 16, 13, 8, 23, 8, 4], signs: "" },
  {
    values: 2,
    counts: [1, 0, 2, 1, 0, 4, 5, 10, 14, 15, 8, 4],
    signs: "0112221122211222222221122212122222222211222222222222112222222222",
  },
  {
    values: 2,
    counts: [0, 0, 1, 5, 7, 10, 14, 15, 8, 4],
    signs: "2212120112222222221122222222221212222222121222222222221212222112",
  },
  {
    values: 2,
    counts: [1, 0, 2, 1, 0, 4, 3, 8, 11, 20, 31, 38, 32, 14, 4],
    signs:
      "011222112221122222222112222222121222222221222222221222122221222211222222222222212221" +
      "222222222222222222221221222222212222222222222221221222212222222222222222222222222222" +
      "2",
  },
  {
    values: 2,
    counts: [0, 0, 0, 3, 8, 14, 17, 25, 31, 41, 22, 8],
    signs:
      "222211222221122220221122222222222212122222222222212122222222222222222212222212222222" +
      "222222222212122222221222222122222222222222222121212222222222222221212221222122222212" +
      "2",
  },
  {
    values: 2,
    counts: [0, 0, 0, 2, 6, 7, 16, 59, 55, 95, 43, 6],
    signs:
      "028112222221212222222112222222222222225555525121525555222225522555225255525225522215" +
      "522221255225252222222522122222212222222222222212222222222242222224212222222222222222" +
      "222222222222221222222222222222222122222222222222222222222222211222222222222222222222" +
      "2222212212122212222211222212212112112",
  },
];

/** A book of codes. */
interface SpectrumBook {
  /** Of one code. */
  values: 2 | 4;
  /** Codes of each length in bits, from 1. */
  counts: readonly number[];
  /** A digit for each code, in their order: the signs that follow it, and 3 for each value that is written out. "": none. */
  signs: string;
}

/** The same of scale factors. */
export const factorCounts: readonly number[] = [
  1, 0, 1, 3, 2, 4, 3, 5, 4, 6, 6, 6, 5, 8, 4, 7, 3, 7, 46,
];

/** Widths of the bands of a long block, as pairs of a width and how many bands have it, by the code of the rate. */
const long96 = [4, 14, 8, 5, 12, 5, 16, 2, 24, 1, 28, 1, 36, 1, 44, 1, 64, 11];
const long64 = [4, 14, 8, 4, 12, 3, 16, 3, 20, 1, 24, 2, 28, 1, 36, 1, 40, 18];
const long48 = [4, 10, 8, 7, 12, 4, 16, 2, 20, 2, 24, 2, 28, 2, 32, 19, 96, 1];
const long32 = [4, 10, 8, 7, 12, 4, 16, 2, 20, 2, 24, 2, 28, 2, 32, 22];
const long24 = [
  4, 11, 8, 10, 12, 4, 16, 3, 20, 2, 24, 2, 28, 2, 32, 1, 36, 2, 40, 1, 44, 1, 48, 1, 52, 2, 64, 5,
];
const long16 = [
  8, 11, 12, 9, 16, 4, 20, 3, 24, 2, 28, 2, 32, 1, 36, 1, 40, 2, 44, 1, 48, 1, 52, 1, 56, 1, 60, 1,
  64, 3,
];
const long8 = [
  12, 13, 16, 7, 20, 4, 24, 3, 28, 2, 32, 1, 36, 2, 40, 1, 44, 1, 48, 1, 52, 1, 56, 1, 60, 1, 64, 1,
  80, 1,
];
/** And of a short one. */
const short96 = [4, 6, 8, 3, 16, 1, 28, 1, 36, 1];
const short48 = [4, 5, 8, 3, 12, 3, 16, 3];
const short24 = [4, 7, 8, 3, 12, 2, 16, 2, 20, 1];
const short16 = [4, 8, 8, 2, 12, 2, 16, 1, 20, 2];
const short8 = [4, 7, 8, 4, 12, 1, 16, 1, 20, 2];

/** Where the bands of a long block begin, and where the last ends, by the code of the rate. */
export const longBands = [
  ...[long96, long96, long64, long48, long48, long32, long24, long24],
  ...[long16, long16, long16, long8, long8],
].map(placesOf);
export const shortBands = [
  ...[short96, short96, short96, short48, short48, short48, short24, short24],
  ...[short16, short16, short16, short8, short8],
].map(placesOf);

function placesOf(pairs: readonly number[]): readonly number[] {
  const places = [0];
  for (let at = 0; at < pairs.length; at += 2) {
    const [width = 0, bands = 0] = [pairs[at], pairs[at + 1]];
    for (let band = 0; band < bands; band++) places.push((places.at(-1) ?? 0) + width);
  }
  return places;
}
