/** Time for a connection and its handshake, and for an answer of the server's API, in ms. */
export const answerTimeoutMs = 2_000;
/** All the time that one publication may take, in ms: a submission waits for it. */
export const publishBudgetMs = 3_000;
/** How long a publication waits for a stream that is being looked after, in ms: less would lose to a fresh connection. */
export const healWaitMs = 500;
/** How long a server remembers publications, in ms: longer than one is tried. */
export const duplicateWindowMs = 10_000;
/** Pause between two attempts to reach the server or its stream, in ms. */
export const reconnectPauseMs = 500;
/** Time between two pings of the server, in ms, and how many may stay unanswered: a dead connection shows within 20 s. */
export const pingIntervalMs = 10_000;
export const maxPingsOut = 1;

/**
 * How long one request for a wake-up waits at the server, in ms; then it is made anew. The server says twice in that time
 * that it still holds the request; without a word for this long the request is taken for lost.
 */
export const pullExpiryMs = 10_000;
/** Times that a missing consumer is made before a receiver is told that the queue is away. */
export const maxConsumerRounds = 3;

/** Topics for whose waiting wake-ups a stream has room; beyond that the oldest of all are forgotten. */
export const topicsPerStream = 3;
/** Wake-ups handed out and not settled, in one topic: receivers settle within milliseconds, those of dead ones add up. */
export const maxUnsettled = 10_000;
/** Receivers that wait in one topic at the same time. */
export const maxReceivers = 4_096;

/** Time that open business with the server has when the queue is closed, in ms. */
export const closeTimeoutMs = 2_000;
