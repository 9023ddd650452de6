// Makes ids and secrets at random, and says which form the ids of accounts and keys have.

import { randomBytes } from "node:crypto";

/** Makes ids; comes from the context so that tests can make them predictable. */
export interface Ids {
  /** `prefix`, an underscore, and `length` (default 24) characters of [a-z0-9]. */
  make(prefix: string, length?: number): string;
  /** `length` (default 40) characters of [A-Za-z0-9], for secrets: about 5.95 bits each. */
  secret(length?: number): string;
}

const lower = "abcdefghijklmnopqrstuvwxyz0123456789";
const mixed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Ids from the system's random source. */
export const randomIds: Ids = {
  make: (prefix, length = 24) => `${prefix}_${draw(lower, length)}`,
  secret: (length = 40) => draw(mixed, length),
};

/** Random bytes are taken from the system in pieces of this size, because a call costs more than its bytes. */
const poolBytes = 4096;
let pool = new Uint8Array(0);
let used = 0;

/**
 * Characters picked with equal chance. Bytes past the largest multiple of the alphabet are thrown away. Each byte of the pool is used
 * once.
 */
function draw(alphabet: string, length: number): string {
  const limit = 256 - (256 % alphabet.length);
  const letters: number[] = [];
  while (letters.length < length) {
    if (used === pool.length) {
      pool = randomBytes(poolBytes);
      used = 0;
    }
    const byte = pool[used] ?? 0;
    pool[used++] = 0;
    if (byte < limit) letters.push(alphabet.charCodeAt(byte % alphabet.length));
  }
  return String.fromCharCode(...letters);
}

/**
 * An account's or key's id. It has no slash, because a slash separates the two in a principal, and account and unit in a wallet's
 * name.
 */
export const accountOrKeyIdPattern = /^[A-Za-z0-9_-]{1,64}$/;
