import { factorCounts, longBands, shortBands, spectrumBooks } from "./aac-tables.ts";
import { Bits } from "./bits.ts";

/** Kinds of elements in a unit (ISO 14496-3, 4.4.2.1): one channel, two, low tones, data, filling, and the end. */
const element = { one: 0, two: 1, low: 3, data: 4, fill: 6, end: 7 };
/** Books of bands that have no spectrum: zeros, noise, and what is taken from the other channel. */
const book = { zero: 0, escapes: 11, reserved: 12, noise: 13 };
/** Blocks of a unit that is eight short ones. */
const shortBlocks = 8;
/** Bits of the longest code of a spectrum, and of a scale factor. */
const [maxBits, maxFactorBits] = [16, 19];
/** Bits of a value that is written out, but for those that say how many: decoders know no longer one. */
const maxEscapeOnes = 8;

/** How a unit's blocks are cut. */
interface Blocks {
  isShort: boolean;
  /** Bands that are used, and where each begins. */
  bands: number;
  places: readonly number[];
  /** Blocks that share their bands. */
  groups: readonly number[];
}

/**
 * Bytes of the unit of 1,024 samples with which a packet begins; undefined where there is none that is known. Decoders play all units
 * of a packet, and one takes four bytes, so a packet that says it is one may be minutes: only by going through
 * it code by code is it seen where the first ends.
 */
export function bytesOfAacUnit(packet: Uint8Array, rateCode: number): number | undefined {
  const bits = new Bits(packet);
  let channels = 0;
  while (!bits.isOver) {
    const kind = bits.read(3);
    if (kind === element.end) {
      const bytes = Math.ceil(bits.at / 8);
      return channels > 0 && bytes <= packet.length ? bytes : undefined;
    }
    if (kind === element.fill) skipFill(bits);
    else if (kind === element.data) skipData(bits);
    else if (kind === element.one || kind === element.low) {
      bits.at += 4;
      if (!skipChannel(bits, rateCode)) return undefined;
      channels++;
    } else if (kind === element.two) {
      if (!skipPair(bits, rateCode)) return undefined;
      channels += 2;
    } else return undefined;
  }
  return undefined;
}

function skipFill(bits: Bits): void {
  const count = bits.read(4);
  const bytes = count === 15 ? 14 + bits.read(8) : count;
  bits.at += 8 * bytes;
}

function skipData(bits: Bits): void {
  bits.at += 4;
  const isAligned = bits.read(1) === 1;
  const count = bits.read(8);
  const bytes = count === 255 ? count + bits.read(8) : count;
  if (isAligned) bits.at = Math.ceil(bits.at / 8) * 8;
  bits.at += 8 * bytes;
}

function skipPair(bits: Bits, rateCode: number): boolean {
  bits.at += 4;
  if (bits.read(1) === 0) return skipChannel(bits, rateCode) && skipChannel(bits, rateCode);
  const blocks = readBlocks(bits, rateCode);
  if (!blocks) return false;
  const mask = bits.read(2);
  if (mask === 3) return false;
  if (mask === 1) bits.at += blocks.bands * blocks.groups.length;
  return skipChannel(bits, rateCode, blocks) && skipChannel(bits, rateCode, blocks);
}

function readBlocks(bits: Bits, rateCode: number): Blocks | undefined {
  const isReserved = bits.read(1) === 1;
  const isShort = bits.read(2) === 2;
  bits.at += 1;
  const places = (isShort ? shortBands : longBands)[rateCode];
  if (isReserved || !places) return undefined;
  const bands = bits.read(isShort ? 4 : 6);
  if (bands >= places.length) return undefined;
  // What is told from earlier units is of other kinds of AAC.
  if (!isShort) return bits.read(1) === 0 ? { isShort, bands, places, groups: [1] } : undefined;
  const groups = [1];
  for (let at = 1; at < shortBlocks; at++) {
    const last = groups.length - 1;
    if (bits.read(1) === 1) groups[last] = (groups[last] ?? 0) + 1;
    else groups.push(1);
  }
  return { isShort, bands, places, groups };
}

/** A channel's blocks, which two channels may share. */
function skipChannel(bits: Bits, rateCode: number, shared?: Blocks): boolean {
  bits.at += 8;
  const blocks = shared ?? readBlocks(bits, rateCode);
  const books = blocks && readBooks(bits, blocks);
  if (!books || !skipFactors(bits, books)) return false;
  if (bits.read(1) === 1) {
    const pulses = bits.read(2) + 1;
    bits.at += 6 + pulses * 9;
  }
  if (bits.read(1) === 1) skipNoiseShape(bits, blocks.isShort);
  // Gain is controlled in another kind of AAC.
  return bits.read(1) === 0 && skipSpectrum(bits, blocks, books);
}

/** The book of each band, group by group. */
function readBooks(bits: Bits, { isShort, bands, groups }: Blocks): number[] | undefined {
  const width = isShort ? 3 : 5;
  const goesOn = 2 ** width - 1;
  const books: number[] = [];
  for (let group = 1; group <= groups.length; group++) {
    while (books.length < group * bands) {
      const one = bits.read(4);
      let length = 0;
      for (let more = goesOn; more === goesOn && !bits.isOver; length += more)
        more = bits.read(width);
      if (one === book.reserved || bits.isOver || books.length + length > group * bands)
        return undefined;
      for (let band = 0; band < length; band++) books.push(one);
    }
  }
  return books;
}

function skipFactors(bits: Bits, books: readonly number[]): boolean {
  let isNoisy = false;
  for (const one of books) {
    if (one === book.zero) continue;
    if (one === book.noise && !isNoisy) {
      isNoisy = true;
      bits.at += 9;
      continue;
    }
    bits.at += factorBits[bits.peek(maxFactorBits)] ?? 0;
  }
  return !bits.isOver;
}

function skipNoiseShape(bits: Bits, isShort: boolean): void {
  for (let block = 0; block < (isShort ? shortBlocks : 1); block++) {
    const filters = bits.read(isShort ? 1 : 2);
    const wide = filters > 0 ? bits.read(1) : 0;
    for (let filter = 0; filter < filters; filter++) {
      bits.at += isShort ? 4 : 6;
      const order = bits.read(isShort ? 3 : 5);
      if (order === 0) continue;
      bits.at += 1;
      const narrow = bits.read(1);
      bits.at += order * (3 + wide - narrow);
    }
  }
}

function skipSpectrum(
  bits: Bits,
  { bands, places, groups }: Blocks,
  books: readonly number[],
): boolean {
  for (const [at, one] of books.entries()) {
    const codes = codesOf[one];
    if (!codes) continue;
    const band = at % bands;
    const width = (places[band + 1] ?? 0) - (places[band] ?? 0);
    const values = width * (groups[Math.floor(at / bands)] ?? 0);
    for (let left = values / codes.values; left > 0; left--) {
      const code = codes.byBits[bits.peek(maxBits)] ?? 0;
      // Its own bits, its signs, and how many values are written out.
      bits.at += (code & 31) + ((code >>> 5) & 7);
      for (let escapes = code >>> 8; escapes > 0; escapes--) {
        let ones = 0;
        while (bits.read(1) === 1) if (++ones > maxEscapeOnes) return false;
        bits.at += ones + 4;
      }
    }
    if (bits.isOver) return false;
  }
  return true;
}

/** Bits of the scale factor's code that begins with such bits. */
const factorBits = new Uint8Array(2 ** maxFactorBits);
{
  let at = 0;
  for (const [index, count] of factorCounts.entries()) {
    const places = count * 2 ** (maxFactorBits - index - 1);
    factorBits.fill(index + 1, at, at + places);
    at += places;
  }
}

/** By book: what the code is that begins with such bits; undefined: its bands have no spectrum. */
const codesOf = [undefined, ...spectrumBooks].map((one) => {
  if (!one) return undefined;
  const byBits = new Uint16Array(2 ** maxBits);
  let [at, codes] = [0, 0];
  for (const [index, count] of one.counts.entries()) {
    const places = 2 ** (maxBits - index - 1);
    for (let left = count; left > 0; left--, codes++, at += places) {
      const said = Number(one.signs[codes] ?? 0);
      const escapes = one === spectrumBooks[book.escapes - 1] ? Math.floor(said / 3) : 0;
      byBits.fill((escapes << 8) | ((said - 3 * escapes) << 5) | (index + 1), at, at + places);
    }
  }
  return { values: one.values, byBits };
});
