// The bounds and times of admission, each with its reason. Tests bring others.

/** The bounds of admission. */
export interface AdmissionLimits {
  /** Valid secrets in the cache. The one not used for longest is removed first. */
  maxCachedKeys: number;
  /** Invalid secrets that are remembered. */
  maxInvalidSecrets: number;
  /** How long an invalid secret is remembered, in ms. */
  invalidForMs: number;
  /** Look-ups under way at once. Above it, a secret that is not cached is refused with SERVICE_UNAVAILABLE. */
  maxLookUps: number;
  /** Deadline of a look-up, in ms. */
  lookUpTimeoutMs: number;
  /** No cached key is used after this many ms without a message of auth. */
  maxSilenceMs: number;
  /** The watch begins again after this many ms without a message, in time before `maxSilenceMs`. */
  watchSilenceMs: number;
  /** First pause before a watch begins again, in ms. It doubles up to the longest. */
  minReconnectMs: number;
  maxReconnectMs: number;
  /** Keys whose rate is kept, and as many accounts. */
  maxBuckets: number;
  /** Recorded answers that a key may look up above its rate, a minute, where its rate is less. */
  fewestLookUps: number;
  /** A gateway leases requests for at most this many ms at the key's rate. See `createSharedRates`. */
  leaseMs: number;
  /** Deadline of asking for a lease, in ms. */
  leaseTimeoutMs: number;
  /** A key that auth refused is not asked for again for this many ms. */
  refusedForMs: number;
  /** After auth did not answer, each gateway counts alone for this many ms. */
  unsharedForMs: number;
}

/** The defaults, each with its reason. */
export const admissionLimits: AdmissionLimits = {
  // About 1 KiB each: 50 MiB at most, and more keys than one gateway sees in an hour.
  maxCachedKeys: 50_000,
  // About 150 bytes each. A caller who tries many secrets fills this in a moment. It saves the calls of one client that repeats a wrong
  // key, not those of an attack.
  maxInvalidSecrets: 10_000,
  // The API's contract. An invalid secret may become valid (a new key), and that is noticed within a second.
  invalidForMs: 1_000,
  // A look-up takes about a millisecond, so only a flood reaches this, and no usual load. Each costs a few KiB.
  maxLookUps: 1_024,
  // Longer than any healthy answer, and short enough that a caller gets its 503 before its own time-out.
  lookUpTimeoutMs: 2_000,
  // The API's contract.
  maxSilenceMs: 5_000,
  // Two heartbeats and a half. One late heartbeat ends nothing, and two attempts still fit before the bound.
  watchSilenceMs: 2_500,
  minReconnectMs: 100,
  // Auth counts as back within a second of being back.
  maxReconnectMs: 1_000,
  // About 100 bytes each. Above it the one that was idle for longest is forgotten, which can only admit more.
  maxBuckets: 100_000,
  // A client repeats one request several times. A key of one request a minute gets its answer, and bodies are read every 6 s at most.
  fewestLookUps: 10,
  // The documented error: a sixtieth of the limit for each gateway. Shorter costs calls, longer costs precision.
  leaseMs: 1_000,
  // A request waits for it. In memory it takes a millisecond, and a gateway can always count alone.
  leaseTimeoutMs: 500,
  // A caller that does not stop sending costs one call in this time.
  refusedForMs: 1_000,
  unsharedForMs: 1_000,
};
