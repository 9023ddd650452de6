// The times and bounds of all operations on MongoDB.

/** Milliseconds for a TCP and TLS connection to a server. A server that is up answers within one round trip. */
export const connectTimeoutMs = 2_000;
/** How long an operation waits for a primary, in ms. An early error serves callers better than a long wait. */
export const serverSelectionTimeoutMs = 2_000;
/** How long a server may leave an operation unanswered, in ms. Then its outcome counts as unknown. */
export const socketTimeoutMs = 5_000;
/** How long a write may wait for its majority, in ms. That is less than the socket's time, so that the connection survives. */
export const majorityTimeoutMs = 4_000;
/**
 * How long an operation may take in all, in ms. For each of its commands, finding a server, connecting and the server's silence are
 * over in 9 s. The stores' operations have one or few commands. So an operation that takes longer than this would never end.
 */
export const operationTimeoutMs = 15_000;
/** Least time between two checks of a server whose connection broke, in ms. Operations wait for the next check. */
export const minHeartbeatMs = 100;
/** How long an operation waits for a free connection, in ms. */
export const poolWaitMs = 2_000;

/** For this many ms an operation is tried again. Then its caller gets the error. It is less than one silence of a server. */
export const attemptBudgetMs = 4_000;
/** First pause between two attempts, in ms. It doubles each time. */
export const attemptPauseMs = 20;
/** Longest pause between two attempts, in ms. An election takes seconds, and its end is noticed within this time. */
export const maxAttemptPauseMs = 500;
/** Hint for when to try again in the refusal after that, in ms. */
export const awayRetryMs = 1_000;

/** Attempts at one migration step's entry in the version document. Each attempt that fails lost to a replica that is ahead. */
export const maxMigrationRounds = 100;

/** Commands of one kind under way at once where writes are batched. One that gets no answer does not block the other. */
export const lanesOfWrites = 2;
/** Documents in one such command. They are some hundred KB at most, and take the server few milliseconds. */
export const maxWritesTogether = 64;
