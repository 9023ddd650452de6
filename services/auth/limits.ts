/** Characters of an account's name: a company's full legal name fits. */
export const maxNameChars = 200;
/** Characters of an operation id (the contract's). */
export const maxOperationIdChars = 128;
/** What a secret may look like. 20 characters of this alphabet are 119 bits, so that guessing is out of the question. */
export const secretPattern = /^[A-Za-z0-9_-]{20,200}$/;
/** Random characters of a secret that is made here, after its prefix: 238 bits. */
export const secretChars = 40;
/** Random characters of an account's or key's id: 103 bits, no two alike. */
export const idChars = 20;
/** Models that one key may be bound to: above the size of any catalog that we know. */
export const maxAllowedModels = 200;
/** Requests a minute of a key that was given no rate: 50 a second, more than a person or a small product needs. */
export const defaultKeyRequestsPerMinute = 3_000;
/** Requests a minute of all keys of an account: two keys at their full default rate. */
export const defaultAccountRequestsPerMinute = 6_000;
/** Most of a key's limit, in USD micros: nine billion dollars, exact as a number of JSON. */
export const maxLimitUsdMicros = 9_000_000_000_000_000n;
/** Rotations of a key that are known again by their idempotency keys: a client repeats its last call, not its ninth. */
export const maxRotationsKept = 8;
/** Uses of keys in one message: a few ms of a synchronous store's time. */
export const maxUsesPerMessage = 1_000;
/** Highest rate of a key: what one gateway core can carry in a minute. */
export const maxRequestsPerMinute = 1_000_000;
/** Keys, and accounts, whose requests are counted at once: about 100 bytes each, and more than are busy in one minute. */
export const maxRateBuckets = 200_000;
/** Seconds for which a former secret stays valid when nothing else is said: a day to roll a fleet over. */
export const defaultGraceSeconds = 86_400;
/** Closing accounts in one answer: what drives them on takes them in turns, the longest first. */
export const maxClosingAccounts = 100;
/** Characters of who acts, in the audit log: an issuer's URL and a subject fit. */
export const maxActorChars = 300;
/** Characters of what more the audit log says of an action: ids and figures. */
export const maxActionDetailsChars = 2_000;
/** Longest grace, 30 days: longer is a second key. */
export const maxGraceSeconds = 2_592_000;
/** Accounts of a page. */
export const defaultPageSize = 100;
export const maxPageSize = 1_000;
/** Milliseconds between two looks at the store's revision: a quarter of the second within which a revocation counts. */
export const pollMs = 250;
/** Milliseconds within which every watcher gets a message. */
export const heartbeatMs = 1_000;
/** Milliseconds without a successful look at the store after which this process is not ready: the gateways' own bound. */
export const maxPollSilenceMs = 5_000;
/** Changed keys in one message; a watcher that is further behind begins anew, which costs it less. */
export const maxChangesPerMessage = 1_000;
/** Watchers of one process: a hundred gateways on ten connections each, and a bound against a client that leaks them. */
export const maxWatchers = 1_000;
/** Times that a change of a key, or of the revision, may be overtaken before its caller is told to come back. */
export const maxConflicts = 100;
/** Pause after having been overtaken, in ms: up to this, times how often. */
export const conflictPauseMs = 2;
/** Milliseconds after which a pending revision is given up: more than any write may take, its repeats included. */
export const revisionLostMs = 12_000;

/** How long a session of the console lasts, in milliseconds. */
export interface SessionBounds {
  /** From its last use. */
  readonly idleMs: number;
  /** From its beginning, however much it is used. */
  readonly totalMs: number;
}
/** The contract's: half an hour away from the desk, and a working day. */
export const sessionBoundsOfKeys: SessionBounds = { idleMs: 30 * 60_000, totalMs: 8 * 3_600_000 };
/** The contract's: an operator's session can move money. */
export const sessionBoundsOfOperators: SessionBounds = {
  idleMs: 15 * 60_000,
  totalMs: 4 * 3_600_000,
};
/** A session's use is written at most this often: a page makes many requests a minute. */
export const maxSeenLagMs = 60_000;
/** Sessions of one key, or of the operators: a team's browsers. The oldest gives way, so that sign-ins fill no store. */
export const maxSessionsPerKey = 50;
/** Milliseconds in which further failed sign-ins are one line of the audit log: two lines a minute at most. */
export const signInFailuresTogetherMs = 60_000;
/** Failed sign-ins of one client within a minute (the contract's). */
export const maxFailedSignIns = 10;
/**
 * Failed sign-ins of all clients within a minute: ten a second is more than people's typing errors. Above it further failures are told
 * to wait; right secrets are let in, since theirs are too many bits to be guessed at any rate.
 */
export const maxFailedSignInsOfAll = 600;
/**
 * Clients whose failed sign-ins are counted at once: some hundred bytes each. Where more fail within a minute the one that tried longest
 * ago begins anew; the ceiling over all is long reached by then.
 */
export const maxFailingClients = 10_000;
/** How long a failed sign-in counts. */
export const failedSignInMs = 60_000;
/** Characters of what stands for a client's address. */
export const maxClientChars = 128;
/** Characters of an identity provider's URL, and of a person's id there (OpenID Connect's bound of `sub`). */
export const maxIssuerChars = 500;
export const maxSubjectChars = 255;
