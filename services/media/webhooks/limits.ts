// The times and bounds of webhooks: attempts, pauses, how long they are kept.

/** Ms for one attempt: DNS look-up, connection and answer. A receiver answers first and works afterwards. */
export const attemptTimeoutMs = 10_000;
/** Bytes of an answer that are read and dropped. Only the status counts, but most receivers send a short text with it. */
export const maxAnswerBytes = 16 * 1024;
/** Ms after which an attempt without an end counts as lost with its process: three times the time that an attempt may take. */
export const attemptLeaseMs = 30_000;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** Pauses after the first, second and later failed attempts, in ms. The last pause repeats. */
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
/** Ms from a webhook's making, or its last retry by hand, to its last attempt. */
export const deliverForMs = 24 * hourMs;
/** Ms for which the previous secret stays valid after a rotation. In this time receivers get the new one. */
export const secretGraceMs = 24 * hourMs;
/** Ms for which an ended webhook stays in the log: as long as a job by default. */
export const webhookKeptMs = 30 * 24 * hourMs;
/**
 * Ms for which the body of an ended webhook is kept, for a retry by hand even if its job is gone. A body may have 16 KB, and the
 * job has the same data. Bodies of alerts stay, because they are short and nothing else is kept of an alert.
 */
export const bodyKeptMs = 24 * hourMs;

/**
 * The most webhooks of one account and type that are kept, the newest ones in any state. It applies to types that cost the account
 * nothing, which are all except `job.completed`. There are as many kept failed jobs. A webhook has 20 KB at most, and 3 KB a day
 * after its end.
 */
export const maxFreeWebhooks = 3_000;
/** The most webhooks beyond that number that are deleted when another is stored. */
export const trimmedAtOnce = 100;

/** Ms between two looks for ended jobs and due webhooks. */
export const lookIntervalMs = 500;
/** Ends of jobs that one look announces. */
export const announceBatch = 100;
/** Ms between two deletions of webhooks whose time in the log is over. */
export const clearIntervalMs = 60_000;
/** Ms between two counts of the webhooks that wait. Metrics are read about as often. */
export const waitingIntervalMs = 15_000;
/** Webhooks that one such deletion removes. */
export const clearBatch = 1_000;

/** Attempts of one process at once. Each is a connection that waits. */
export const maxAttempts = 64;
/** Attempts of one account at once, so that its dead receivers leave places to others. */
export const maxAttemptsEach = 8;
/**
 * Attempts to one host and port at once. Accounts that share a dead host leave places to others, and no receiver gets too many
 * connections. The last place is kept for an account that has none there. Many accounts may share the host of a service that takes
 * webhooks for its users.
 */
export const maxAttemptsToHost = 16;
/**
 * Other hosts of an account that one turn looks at, where its longest due webhook is for a host without room. Each costs a read.
 */
export const maxHostsLookedAt = 16;
/** Repeats of a write whose webhook another process has changed each time. */
export const maxWebhookRounds = 16;

/** Webhooks of a page: by default and at most. */
export const webhookPage = { default: 20, most: 100 } as const;
