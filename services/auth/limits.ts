// The bounds and defaults of accounts, keys, sessions and sign-ins. Those of operators who sign in by name are in
// `operator-limits.ts`.

/** Characters of an account's name: a company's full legal name fits. */
export const maxNameChars = 200;
/** Characters of the operators' notes about an account: a page of text. */
export const maxNotesChars = 2_000;
/** Characters of an operation id. The contract names this bound. */
export const maxOperationIdChars = 128;
/** The form of a secret. 20 characters of this alphabet are 119 bits, so that guessing is hopeless. */
export const secretPattern = /^[A-Za-z0-9_-]{20,200}$/;
/** Random characters of a generated secret, after its prefix: 238 bits. */
export const secretChars = 40;
/** Random characters of an account's or key's id: 103 bits, so that no two are the same. */
export const idChars = 20;
/** Models that one key may be bound to: above the size of any known catalog. */
export const maxAllowedModels = 200;
/** Requests a minute of a key without a rate of its own: 50 a second, more than a person or a small product needs. */
export const defaultKeyRequestsPerMinute = 3_000;
/** Requests a minute of all keys of an account together: two keys at their full default rate. */
export const defaultAccountRequestsPerMinute = 6_000;
/** Highest limit of a key in USD micros: nine billion dollars, exact as a number of JSON. */
export const maxLimitUsdMicros = 9_000_000_000_000_000n;
/** Highest monthly grant, in USD micros or credits: that of any grant of billing. */
export const maxMonthlyGrant = 9_000_000_000_000_000n;
/** Rotations of a key that are recognized by their idempotency keys. A client repeats its last call, not its ninth. */
export const maxRotationsKept = 8;
/** Uses of keys in one message: a few ms of a synchronous store's time. */
export const maxUsesPerMessage = 1_000;
/** Highest rate of a key: as many requests as one core of a gateway can handle in a minute. */
export const maxRequestsPerMinute = 1_000_000;
/** Keys, and accounts, whose requests are counted at once. Each takes about 100 bytes, and fewer are busy in one minute. */
export const maxRateBuckets = 200_000;
/** Default seconds for which a former secret stays valid: a day to replace it on all machines. */
export const defaultGraceSeconds = 86_400;
/** Closing accounts in one answer. The gateways complete them in turns, the longest waiting first. */
export const maxClosingAccounts = 100;
/** Characters of an actor in the audit log: an issuer's URL and a subject fit. */
export const maxActorChars = 300;
/** Characters of an action's details in the audit log: ids and figures. */
export const maxActionDetailsChars = 2_000;
/** Longest grace: 30 days. For a longer time a caller should make a second key. */
export const maxGraceSeconds = 2_592_000;
/** Accounts that one call names by their ids: as many as the rows of the console's longest page. */
export const maxNamedAccounts = 100;
/** Accounts of a page. */
export const defaultPageSize = 100;
export const maxPageSize = 1_000;
/** Milliseconds between two looks at the store's revision: a quarter of the second within which a deleted key must be refused. */
export const pollMs = 250;
/** Milliseconds within which every watcher gets a message. */
export const heartbeatMs = 1_000;
/** Milliseconds without a successful look at the store after which this process is not ready. The gateways have the same bound. */
export const maxPollSilenceMs = 5_000;
/** Changed keys in one message. For a watcher that is further behind, starting again is cheaper. */
export const maxChangesPerMessage = 1_000;
/** Watchers of one process: a hundred gateways with ten connections each. It is also a bound against a client that leaks them. */
export const maxWatchers = 1_000;
/** Times that another write may overtake a change of a key or of the revision, before its caller is asked to come back. */
export const maxConflicts = 100;
/** Milliseconds. The longest pause after a conflict is this, times the number of conflicts. */
export const conflictPauseMs = 2;
/** Milliseconds after which a pending revision is given up: more than any write may take, including its repeats. */
export const revisionLostMs = 12_000;

/** The length of a console session in milliseconds. */
export interface SessionBounds {
  /** From its last use. */
  readonly idleMs: number;
  /** From its beginning, however often it is used. */
  readonly totalMs: number;
}
/** The contract names these bounds: half an hour away from the desk, and a working day. */
export const sessionBoundsOfKeys: SessionBounds = { idleMs: 30 * 60_000, totalMs: 8 * 3_600_000 };
/** The contract names these bounds. An operator's session can move money. */
export const sessionBoundsOfOperators: SessionBounds = {
  idleMs: 15 * 60_000,
  totalMs: 4 * 3_600_000,
};
/** Milliseconds between two writes of a session's use. A page makes many requests a minute. */
export const maxSeenLagMs = 60_000;
/** Sessions of one key, or of the operators: a team's browsers. A new one ends the oldest, so that sign-ins cannot fill the store. */
export const maxSessionsPerKey = 50;
/** Milliseconds in which further failed sign-ins share one line of the audit log: two lines a minute at most. */
export const signInFailuresTogetherMs = 60_000;
/** Failed sign-ins of one client within a minute. The contract names this bound. */
export const maxFailedSignIns = 10;
/**
 * Failed sign-ins of all clients within a minute: ten a second is more than people's typing errors. Above it further failed attempts are
 * refused. A correct secret is still accepted, because it has too many bits to be guessed at any rate.
 */
export const maxFailedSignInsOfAll = 600;
/**
 * Clients, and names, whose failed sign-ins are counted at once: some hundred bytes each. Where more fail within a minute, the count of the
 * one that tried longest ago starts again. By then the bound over all clients is long reached.
 */
export const maxFailingClients = 10_000;
/** Milliseconds for which a failed sign-in counts. */
export const failedSignInMs = 60_000;
/** Characters that identify a client's address. */
export const maxClientChars = 128;
/** Characters of an identity provider's URL, and of a person's id there. OpenID Connect bounds `sub` so. */
export const maxIssuerChars = 500;
export const maxSubjectChars = 255;
