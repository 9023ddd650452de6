// The parts of this room that others import: the guarded fetcher, its errors and limits, and the judgement of addresses and URLs.

export { formatAddress, isPublicAddress, parseLiteral } from "./address.ts";
export type { Dial, DialTarget } from "./dial.ts";
export { OutsideError, type OutsideErrorKind } from "./errors.ts";
export {
  createGuardedFetcher,
  type FetchedBytes,
  type FetchOptions,
  type FetchStreamOptions,
  type GuardedFetcher,
  type GuardedFetcherOptions,
  type PostOptions,
  type PutBytes,
} from "./fetcher.ts";
export { type OutsideLimits, outsideLimits } from "./limits.ts";
export type { Resolve, ResolvedAddress } from "./resolve.ts";
export { isLocalNameOrNonPublicLiteral } from "./url.ts";
