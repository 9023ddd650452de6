/** How long a store may leave a request unanswered, or the middle of a body unsent, in ms; its connections too. */
export const silenceMs = 5_000;
/** The same for a write: a store answers when the bytes are safe, and a large object takes a disk its time. */
export const writeSilenceMs = 20_000;
/** How long a request waits for a free connection, in ms. */
export const connectionWaitMs = 2_000;
/** Connections to the store at once: slow readers hold one each. */
export const maxConnections = 1_024;
/** Connections that are kept for the next request. */
export const maxIdleConnections = 32;

/** For this long after its first failure a request is tried again, in ms; then its caller is told. */
export const attemptBudgetMs = 4_000;
/** First pause between two attempts, in ms; doubled each time. */
export const attemptPauseMs = 50;
/** Longest pause between two attempts, in ms: a restarted store is noticed within this. */
export const maxAttemptPauseMs = 500;
/** Hint of the refusal after that, in ms. */
export const awayRetryMs = 1_000;

/** What a write keeps in memory, in bytes; beyond it a file of its own holds the bytes until their size is known. */
export const maxBufferedBytes = 1 << 20;
/** The largest object that one PUT may carry, in bytes: the limit of S3 itself. */
export const maxBlobBytes = 5 * 2 ** 30;
/** Keys in one page of a listing: it is parsed at one go, and must not hold up what else the process does. */
export const listPageKeys = 500;
