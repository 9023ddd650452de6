// The times and bounds of a store of blobs in S3.

/** How long a store may leave a request or a connection unanswered, or pause in the middle of a body, in ms. */
export const silenceMs = 5_000;
/** The same for a write. A store answers when the bytes are safe, and a disk needs time for a large object. */
export const writeSilenceMs = 20_000;
/** How long a request waits for a free connection, in ms. */
export const connectionWaitMs = 2_000;
/** Connections to the store at once. Each slow reader holds one. */
export const maxConnections = 1_024;
/** Connections that are kept for the next request. */
export const maxIdleConnections = 32;

/** For this many ms after its first failure a request is tried again. Then its caller gets the error. */
export const attemptBudgetMs = 4_000;
/** First pause between two attempts, in ms. It doubles each time. */
export const attemptPauseMs = 50;
/** Longest pause between two attempts, in ms. A restarted store is noticed within this time. */
export const maxAttemptPauseMs = 500;
/** Hint for when to try again in the refusal after that, in ms. */
export const awayRetryMs = 1_000;

/** The most bytes of a write that are kept in memory. Beyond it a file holds the bytes until their size is known. */
export const maxBufferedBytes = 1 << 20;
/** The largest object of one PUT, in bytes: the limit of S3 itself. */
export const maxBlobBytes = 5 * 2 ** 30;
/** Keys in one page of a listing. A page is parsed at once, and must not block the process. */
export const listPageKeys = 500;
