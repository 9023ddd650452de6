/** Time for a TCP and TLS connection to a server, in ms: a server that is up answers within one round trip. */
export const connectTimeoutMs = 2_000;
/** How long an operation waits for a primary, in ms: callers are better told than kept. */
export const serverSelectionTimeoutMs = 2_000;
/** How long a server may leave an operation unanswered, in ms; then its outcome counts as unknown. */
export const socketTimeoutMs = 5_000;
/** How long a write may wait for its majority, in ms: below the socket's time, so that the connection lives on. */
export const majorityTimeoutMs = 4_000;
/**
 * How long an operation may take in all, in ms: finding a server, its connection and the server's silence are over in 9 s for each
 * of its commands, and the stores' operations are of one or few, so that what takes longer has no end.
 */
export const operationTimeoutMs = 15_000;
/** Least time between two looks at a server whose connection broke, in ms: operations wait for the next look. */
export const minHeartbeatMs = 100;
/** How long an operation waits for a free connection, in ms. */
export const poolWaitMs = 2_000;

/** For this long an operation is tried again, in ms; then its caller is told. Less than one silence of a server. */
export const attemptBudgetMs = 4_000;
/** First pause between two attempts, in ms; doubled each time. */
export const attemptPauseMs = 20;
/** Longest pause between two attempts, in ms: an election takes seconds, its end is noticed within this. */
export const maxAttemptPauseMs = 500;
/** Hint of the refusal after that, in ms. */
export const awayRetryMs = 1_000;

/** Attempts at one migration step's entry in the version document; each loses to a replica that went further. */
export const maxMigrationRounds = 100;

/** Commands of one kind under way at once where writes travel together: one that hangs leaves the others a way. */
export const lanesOfWrites = 2;
/** Documents in one such command: some hundred KB at most, and few milliseconds of the server. */
export const maxWritesTogether = 64;
