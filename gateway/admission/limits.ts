/** The bounds of admission. */
export interface AdmissionLimits {
  /** Valid secrets in the cache; the one not used for longest goes first. */
  maxCachedKeys: number;
  /** Invalid secrets that are remembered. */
  maxInvalidSecrets: number;
  /** How long an invalid secret is remembered. */
  invalidForMs: number;
  /** Look-ups under way at once; above it, what is not cached is refused with SERVICE_UNAVAILABLE. */
  maxLookUps: number;
  /** Deadline of a look-up. */
  lookUpTimeoutMs: number;
  /** Silence of auth after which no cached key counts. */
  maxSilenceMs: number;
  /** Silence after which the watch is taken up anew, in time before `maxSilenceMs`. */
  watchSilenceMs: number;
  /** First pause before a watch is taken up anew; it doubles up to the longest. */
  minReconnectMs: number;
  maxReconnectMs: number;
  /** Keys and accounts whose rate is kept, each. */
  maxBuckets: number;
  /** Recorded answers that a key may have looked up above its rate, a minute, where its rate is less. */
  fewestLookUps: number;
  /** A gateway holds requests for this long at the key's rate, at most; see `createSharedRates`. */
  leaseMs: number;
  /** Deadline of asking for them. */
  leaseTimeoutMs: number;
  /** A key that auth refused is not asked for again so soon. */
  refusedForMs: number;
  /** After auth did not answer, each gateway counts for itself for so long. */
  unsharedForMs: number;
}

/** The defaults, each with its reason. */
export const admissionLimits: AdmissionLimits = {
  // About 1 KiB each: 50 MiB at most, and more keys than one gateway sees in an hour.
  maxCachedKeys: 50_000,
  // About 150 bytes each. A caller who tries secrets finds this full in a moment: it spares the calls of one client that
  // repeats a wrong key, not those of an attack.
  maxInvalidSecrets: 10_000,
  // The contract: an invalid secret may become valid (a new key), and that shows within a second.
  invalidForMs: 1_000,
  // A look-up takes about a millisecond, so this is the flood, not the load; each costs a few KiB.
  maxLookUps: 1_024,
  // Longer than any healthy answer, short enough that a caller gets its 503 rather than a time-out of its own.
  lookUpTimeoutMs: 2_000,
  // The contract.
  maxSilenceMs: 5_000,
  // Two heartbeats and a half: one late heartbeat tears nothing down, and two attempts still fit before the bound.
  watchSilenceMs: 2_500,
  minReconnectMs: 100,
  // Auth counts as back within a second of being back.
  maxReconnectMs: 1_000,
  // About 100 bytes each. Above it the one idle for longest is forgotten, which can only be kind to it.
  maxBuckets: 100_000,
  // A client repeats one request several times: the key of one request a minute has its answer, and bodies are read every 6 s at the most.
  fewestLookUps: 10,
  // The error that is stated: a sixtieth of the limit for each gateway. Shorter costs calls, longer precision.
  leaseMs: 1_000,
  // A request waits for it: in memory it takes a millisecond, and counting for oneself is always at hand.
  leaseTimeoutMs: 500,
  // A caller that does not stop asking costs one call in this time.
  refusedForMs: 1_000,
  unsharedForMs: 1_000,
};
