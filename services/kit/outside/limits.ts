// The bounds of a fetch from an address that a caller named.

import { maxUrlCharacters } from "#kit/base/url.ts";

/** The bounds of one fetch. */
export type OutsideLimits = {
  /** Milliseconds for the whole fetch: look-ups, connections, redirects and body. */
  timeoutMs: number;
  /** Redirects that are followed. A further one is `bad_status`. */
  redirects: number;
  /** Length of a URL, the caller's or a redirect's. */
  urlChars: number;
  /** Addresses of one name that are dialled, in the order of the answer. All are checked. */
  dialledAddresses: number;
  /** Milliseconds for one of several addresses before the next is tried. */
  attemptTimeoutMs: number;
  /** All response headers together. */
  headerBytes: number;
};

/** The defaults, each with its reason. */
export const outsideLimits: OutsideLimits = {
  // The API's contract: 10 s in all and three redirects.
  timeoutMs: 10_000,
  redirects: 3,
  urlChars: maxUrlCharacters,
  // Two of each family are enough to avoid one dead host or a broken IPv6 route.
  dialledAddresses: 4,
  // Longer than the slowest round trip on earth, so that only a dead address is left.
  attemptTimeoutMs: 1000,
  // Node's own default. An image host has no reason to send more.
  headerBytes: 16 * 1024,
};
