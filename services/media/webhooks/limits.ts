/** For one attempt: look-up, connection and answer, in ms. A receiver answers first and works afterwards. */
export const attemptTimeoutMs = 10_000;
/** Bytes of an answer that are read and dropped: the status alone counts, and most receivers say a word with it. */
export const maxAnswerBytes = 16 * 1024;
/** An attempt that nothing was heard of for this long was lost with its process, in ms: three times what one may take. */
export const attemptLeaseMs = 30_000;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** Pauses after the first, second, … failed attempt, in ms; the last one from then on. */
export const pausesMs: readonly number[] = [
  5_000,
  30_000,
  2 * minuteMs,
  10 * minuteMs,
  30 * minuteMs,
  hourMs,
  2 * hourMs,
  4 * hourMs,
];
/** From a webhook's making, or its last retry by hand, to its last attempt, in ms. */
export const deliverForMs = 24 * hourMs;
/** How long the secret before stays valid after a rotation, in ms: receivers are given the new one meanwhile. */
export const secretGraceMs = 24 * hourMs;
/** How long a webhook that is at its end stays in the log, in ms: as long as a job by default. */
export const webhookKeptMs = 30 * 24 * hourMs;
/**
 * How long the body of one that is at its end is kept, in ms: for a retry by hand, also where its job is gone. It may have 16 KB, and
 * the job has all of it. Those of alerts stay: they are short, and nothing else is kept of an alert.
 */
export const bodyKeptMs = 24 * hourMs;

/**
 * Webhooks of one account that are kept, of each type that costs the account nothing (all but `job.completed`), the newest, in any
 * state: as many as failed jobs are. One has 20 KB at most, and 3 KB a day after its end.
 */
export const maxFreeWebhooks = 3_000;
/** Of what is more than that, webhooks that go when another is written down. */
export const trimmedAtOnce = 100;

/** How often ends of jobs, and webhooks that are due, are looked for, in ms. */
export const lookIntervalMs = 500;
/** Ends of jobs that are written down at one look. */
export const announceBatch = 100;
/** How often the log is cleared of what its time is over for, in ms. */
export const clearIntervalMs = 60_000;
/** Webhooks that go at one clearing. */
export const clearBatch = 1_000;

/** Attempts under way in one process: each is a connection that waits. */
export const maxAttempts = 64;
/** Of one account: its dead receivers leave the others their places. */
export const maxAttemptsEach = 8;
/**
 * To one host and port: accounts that share a dead one leave the others theirs, and no receiver is run over. The last place is kept
 * for an account that has none there: many share the host of a service that takes webhooks for its customers.
 */
export const maxAttemptsToHost = 16;
/** Other hosts of an account that are looked at in one turn, where its longest due webhook is for a host without room: each is a read. */
export const maxHostsLookedAt = 16;
/** Turns of a write that finds its webhook changed by another process each time. */
export const maxWebhookRounds = 16;

/** Webhooks a page, where the caller says nothing, and at most. */
export const webhookPage = { default: 20, most: 100 } as const;
