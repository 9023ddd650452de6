import { createHash } from "node:crypto";

/** Choices that are the same for the same seed. */
export interface Chooser {
  /** One of `options`, which must not be empty. */
  pick<T>(options: readonly T[]): T;
  /** An integer from `min` to `max`, both included. */
  integer(min: number, max: number): number;
}

/** A seed's beginning tells it from others well enough; hashing 64 MiB would hold everything up. */
const seedChars = 256 * 1024;

/** Choices seeded by a text (mulberry32 over the hash of its beginning and length). */
export function chooserOf(seed: string): Chooser {
  let state = createHash("sha256")
    .update(`${seed.length} ${seed.slice(0, seedChars)}`)
    .digest()
    .readUInt32LE(0);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    pick<T>(options: readonly T[]) {
      return options[Math.floor(next() * options.length)] as T;
    },
    integer: (min, max) => min + Math.floor(next() * (max - min + 1)),
  };
}
