// The times and bounds of the queue in JetStream.

/** Time for a connection and its handshake, and for an answer of the server's API, in ms. */
export const answerTimeoutMs = 2_000;
/** The most time for one publication, in ms: a submission waits for it. */
export const publishBudgetMs = 3_000;
/**
 * How long a publication waits while the stream is being made again, in ms. A shorter wait would often end before a fresh connection is
 * ready.
 */
export const healWaitMs = 500;
/** How long a server remembers publications, in ms. That is longer than a publication is tried. */
export const duplicateWindowMs = 10_000;
/** Pause between two attempts to reach the server or its stream, in ms. */
export const reconnectPauseMs = 500;
/** Time between two pings of the server, in ms, and how many may stay unanswered. So a dead connection is noticed within 20 s. */
export const pingIntervalMs = 10_000;
export const maxPingsOut = 1;

/**
 * How long one request for a wake-up waits at the server, in ms. Then it is made again. In that time the server sends two heartbeats
 * for the request. Without any for this long, the request counts as lost.
 */
export const pullExpiryMs = 10_000;
/** How often a missing consumer is made before a receiver gets the error that the queue is away. */
export const maxConsumerRounds = 3;

/** Topics for whose waiting wake-ups a stream has room. Beyond that the oldest of all are forgotten. */
export const topicsPerStream = 3;
/**
 * Wake-ups of one topic that were handed out and not settled. Receivers settle within milliseconds, but those of dead receivers add up.
 */
export const maxUnsettled = 10_000;
/** Receivers that wait in one topic at the same time. */
export const maxReceivers = 4_096;

/** Time for requests under way at the server when the queue is closed, in ms. */
export const closeTimeoutMs = 2_000;
