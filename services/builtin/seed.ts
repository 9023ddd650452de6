// Makes repeatable random numbers of a prompt and its seed. So equal requests have equal results on every machine.

import { createHash } from "node:crypto";

/** A repeatable source of numbers. The same seed text gives the same sequence on every machine. */
export type Random = {
  /** A number in [0, 1). */
  readonly next: () => number;
  /** A number in [low, high). */
  readonly between: (low: number, high: number) => number;
  /** A whole number in [0, count). */
  readonly below: (count: number) => number;
  /** One of the list, which must not be empty. */
  readonly pick: <T>(list: readonly T[]) => T;
  /** An independent sequence, so that the numbers that one part takes never shift another's. */
  readonly fork: (label: string) => Random;
};

/** The seed text of words. Without a caller's seed it is made of the words alone. */
export function seededText(words: readonly string[], seed: number | undefined): string {
  return [...words, ...(seed === undefined ? [] : [`seed ${seed}`])].join("\u0000");
}

/** Creates the sequence that belongs to `seedText` (sfc32 over the SHA-256 of the text). */
export function createRandom(seedText: string): Random {
  const digest = createHash("sha256").update(seedText).digest();
  let a = digest.readInt32LE(0);
  let b = digest.readInt32LE(4);
  let c = digest.readInt32LE(8);
  let counter = digest.readInt32LE(12);
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 4294967296;
  };
  const below = (count: number): number => Math.floor(next() * count);
  return {
    next,
    below,
    between: (low, high) => low + (high - low) * next(),
    pick: (list) => {
      const chosen = list[below(list.length)];
      if (chosen === undefined) throw new RangeError("pick needs a list that is not empty");
      return chosen;
    },
    fork: (label) => createRandom(`${seedText}\u0000${label}`),
  };
}
