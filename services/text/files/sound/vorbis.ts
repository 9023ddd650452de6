import { maxSoundRate } from "#kit/sound/limits.ts";

/** How a stream of Vorbis is read. */
export interface VorbisConfig {
  rate: number;
  /** Samples of a long block. */
  long: number;
  /** Samples of the block in a packet; undefined: it is none. */
  blockOf(packet: Uint8Array): number | undefined;
}

/** Bits of a mode in the packet that ends a stream's head: its block's size, two kinds that are 0, and its mapping. */
const mode = { bits: 41, mappingBits: 8, zeroBits: 32 };
/** Modes of a stream at the most, and the bits of their number. */
const [maxModes, countBits] = [64, 6];

/** Reads a stream's first and third packet (Vorbis I, section 4.2); undefined where they are none. */
export function readVorbisConfig(first: Buffer, setup: Buffer): VorbisConfig | undefined {
  const rate = first.readUInt32LE(12);
  const sizes = first[28] ?? 0;
  const [short, long] = [2 ** (sizes & 15), 2 ** (sizes >>> 4)];
  if (rate === 0 || rate > maxSoundRate || short > long || short < 64 || long > 8_192) {
    return undefined;
  }
  const isLong = modesIn(setup);
  if (!isLong) return undefined;
  const bits = 32 - Math.clz32(isLong.length - 1);
  return {
    rate,
    long,
    blockOf: ([head = 1]) => {
      const isOne = isLong[(head >>> 1) & ((1 << bits) - 1)];
      if ((head & 1) === 1 || isOne === undefined) return undefined;
      return isOne ? long : short;
    },
  };
}

/** Of each mode whether its block is a long one: they stand at the packet's end, so they are looked for from there. */
function modesIn(setup: Buffer): boolean[] | undefined {
  const bit = (at: number) => ((setup[at >>> 3] ?? 0) >>> (at & 7)) & 1;
  const number = (at: number, bits: number) => {
    let sum = 0;
    for (let i = bits - 1; i >= 0; i--) sum = sum * 2 + bit(at + i);
    return sum;
  };
  let end = setup.length * 8 - 1;
  // One bit that is set ends it, and fewer than eight behind it that are not.
  while (end > 0 && bit(end) === 0) end--;
  let found: boolean[] | undefined;
  const modes: boolean[] = [];
  for (let at = end - mode.bits; at >= countBits && modes.length < maxModes; at -= mode.bits) {
    if (number(at + 1, mode.zeroBits) !== 0) break;
    if (number(at + 1 + mode.zeroBits, mode.mappingBits) >= maxModes) break;
    modes.unshift(bit(at) === 1);
    if (number(at - countBits, countBits) + 1 === modes.length) found = [...modes];
  }
  return found;
}
