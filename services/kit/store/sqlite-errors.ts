// Tells a SQLite file that cannot be used now from a fault of our own, and refuses the operation.

import { unavailable } from "#kit/base/errors.ts";

/** SQLite's codes for "not now": busy, locked, out of memory, I/O error, full, cannot open. */
const awayCodes = new Set([5, 6, 7, 10, 13, 14]);

/** The same work. It refuses with SERVICE_UNAVAILABLE where the file is away. Any other error is unchanged. */
export function refusingWhenAway<A extends unknown[], T>(
  work: (...args: A) => T,
): (...args: A) => T {
  return (...args) => {
    try {
      return work(...args);
    } catch (error) {
      throw meantBy(error);
    }
  };
}

/** The refusal where the file is away, or else the error. */
export function meantBy(error: unknown): unknown {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
  return awayCodes.has(code) ? unavailable(error) : error;
}
