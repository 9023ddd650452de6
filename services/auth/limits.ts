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
/** Keys of one account, revoked ones included: `ListKeys` answers all in one message. */
export const maxKeysPerAccount = 1_000;
/** Models that one key may be bound to: above the size of any catalog that we know. */
export const maxAllowedModels = 200;
/** Characters of a model id. */
export const maxModelIdChars = 200;
/** Requests a minute of a key that was given no rate: 50 a second, more than a person or a small product needs. */
export const defaultKeyRequestsPerMinute = 3_000;
/** Requests a minute of all keys of an account: two keys at their full default rate. */
export const defaultAccountRequestsPerMinute = 6_000;
/** Highest rate of a key: what one gateway core can carry in a minute. */
export const maxRequestsPerMinute = 1_000_000;
/** Keys, and accounts, whose requests are counted at once: about 100 bytes each, and more than are busy in one minute. */
export const maxRateBuckets = 200_000;
/** Seconds for which a former secret stays valid when nothing else is said: a day to roll a fleet over. */
export const defaultGraceSeconds = 86_400;
/** Longest grace, 30 days: longer is a second key. */
export const maxGraceSeconds = 2_592_000;
/** Accounts of a page. */
export const defaultPageSize = 100;
export const maxPageSize = 1_000;
/** Milliseconds between two looks at the store's revision: a quarter of the second within which a revocation counts. */
export const pollMs = 250;
/** Milliseconds within which every watcher hears something. */
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
