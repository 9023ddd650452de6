import type { FairShareBounds } from "#kit/fair-share.ts";

/** Characters of a prompt, a music description and lyrics, Unicode code points (the contract's). */
export const maxPromptCharacters = 32_000;
/** Characters of a piece of music's title: longer is no title. */
export const maxTitleCharacters = 1_000;
/** Images of one job (the contract's). */
export const maxImages = 10;
/** Characters of a model id: above it no catalog has one, and a refusal does not echo it. */
export const maxModelIdLength = 200;
/** Characters of a reference's URL that is no data URI: it is written down with the job. */
export const maxReferenceUrlLength = 8_192;
/** Characters of a reference's file id: above it no file has one. */
export const maxFileIdLength = 100;

/** Turns of a submission that finds its idempotency slot taken, and then free again: each is another caller's refusal. */
export const maxSubmitTurns = 8;
/** For bringing a job's references in, whether or not its caller still waits: seven of 10 s each and their decoding, in ms. */
export const importTimeoutMs = 120_000;
/** How often a submission that brings references in says that it still lives, in ms. */
export const importBeatMs = 1_500;
/** When billing asks about a job's hold, counted from the job's making: by then nearly every submission has ended, in ms. */
export const holdCheckMs = 60_000;
/** How long billing is told to keep the hold of a job that is not yet accepted, in ms. */
export const keepReservingMs = 60_000;
/** How long a submission without an end is driven on: billing was away all that time, in ms. */
export const maxReservingMs = 3_600_000;

/** From acceptance to the first work (the contract's), in ms. */
export const maxQueuedMs = 24 * 3_600_000;
/** From the first work to the end (the contract's), in ms. */
export const maxRunningMs = 30 * 60_000;
/** How long an output that a job refers to is kept at least, in ms: the longest that the job may take from its submission on. */
export const lentMs = maxReservingMs + maxQueuedMs + maxRunningMs;
/** A worker that is not heard from for this long has lost its job (the contract's), in ms. */
export const leaseMs = 30_000;
/** First pause of a job that no upstream would take, in ms; doubled each time. */
export const firstWaitMs = 2_000;
/** Longest such pause, also where `Retry-After` asks for more, in ms: a mistaken answer does not cost a job its day. */
export const maxWaitMs = 300_000;
/** How often a worker renews its leases, in ms: two may fail. */
export const heartbeatMs = 8_000;
/** A worker that could not renew a lease gives up this long before others may claim the job, in ms. */
export const leaseMarginMs = 4_000;
/** Attempts that may be lost (the contract's); the third lost one fails the job. */
export const maxAttempts = 3;
/** First pause after an upstream's answer stayed unknown, in ms; doubled each time. */
export const setAsideMs = 2_000;
/** Longest such pause, in ms. */
export const maxSetAsideMs = 60_000;
/** Least time between two stored reports of progress of one job, in ms: a poll every 3 s shows each step. */
export const progressEveryMs = 1_000;
/** Steps of its life that a job keeps; the newest ones (the contract's). */
export const maxEvents = 100;

/** Jobs of each kind that one process renders at once where nothing else is said: fewer keep a machine busy. */
export const defaultWorkers = 4;
/** Most that may be said: each holds a lease and may hold a stream's buffers. */
export const maxWorkers = 1_000;
/**
 * Jobs of a kind that one process has at one upstream which renders elsewhere, where the catalog gives that upstream no
 * `maxConcurrent`: they mostly wait, each with a lease that is renewed and a connection or a look at its task now and then.
 */
export const upstreamJobs = 64;
/** Jobs of one account among these: where an upstream hangs, its other callers still have places. */
export const upstreamJobsEach = 48;
/** How often an idle worker looks for due jobs without having been woken, in ms: queues forget, and model limits free up elsewhere. */
export const claimPollMs = 2_000;
/** Pause of a worker whose store or queue does not answer, in ms. */
export const claimRetryMs = 1_000;
/** Waiting groups (model, upstream, account) looked at for one claim; beyond it a claim goes on where the last one ended. */
export const maxClaimGroups = 2_000;
/** Lost running jobs of a kind looked at for one claim, longest lost first. */
export const maxLostJobs = 100;

/** How often due jobs are looked for, by index, in ms. */
export const sweepIntervalMs = 500;
/** Due jobs taken at a look. */
export const sweepBatch = 100;
/** Due jobs driven on at once: billing and blobs are not run over after an outage. */
export const sweepConcurrency = 16;
/** A job that was taken by a sweeper is looked at again after this, in ms: whoever took it may have died. */
export const sweepRetryMs = 4_000;
/** A job whose wake-up is not known to be published is taken up after this, in ms (the contract: within 2 s). */
export const unpublishedMs = 1_000;
/** First pause until a queued job's wake-up is published again, in ms; doubled each time. */
export const republishMs = 10_000;
/** Longest such pause, in ms: workers look for themselves too, so this only speeds up what a lost wake-up slowed. */
export const maxRepublishMs = 300_000;
/** When a job that stands between two steps (reserving, settling, failing) is taken up, in ms (the contract: within 5 s). */
export const stepDueMs = 3_000;
/** How long the record of a rejected submission stays, for whoever was joining it, in ms. */
export const rejectedKeptMs = 10 * 60_000;

/** How often open jobs are counted, for whoever operates this, in ms: about as often as metrics are read. */
export const censusIntervalMs = 15_000;
/** How often blobs are looked through for what nobody needs, in ms: well inside the contract's 24 h. */
export const collectIntervalMs = 3_600_000;
/** Least age of a blob to be collected, in ms: twice the longest time between an object's storing and its job's end. */
export const minCollectAgeMs = 2 * maxRunningMs;

/** Jobs a page, where the caller says nothing, and at most. */
export const pageSizes = {
  key: { default: 20, most: 100 },
  account: { default: 100, most: 1_000 },
} as const;
/** Silence of a watch after which it sends a heartbeat (the contract's), in ms. */
export const watchHeartbeatMs = 15_000;
/** How often a watch reads its job, in ms: changes made by another process are seen this late, and {@link sharedLookMs}. */
export const watchPollMs = 750;
/** What one watch of a job has read is news enough for the others of it, in ms. */
export const sharedLookMs = 250;
/**
 * Watches of one process: each reads its job every {@link watchPollMs}. An account that has its share is refused the next
 * one at once; it can watch jobs one after the other, or look at them.
 */
export const watchShare: FairShareBounds = {
  places: 2_048,
  each: { places: 256, waiting: 0 },
  eachUnpaid: { places: 64, waiting: 0 },
  waitMs: 0,
};
/** Characters of an operation id (the contract's). */
export const maxOperationIdLength = 128;
