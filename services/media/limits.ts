import type { FairShareBounds } from "#kit/share/fair-share.ts";

/** Characters of a piece of music's title: longer is no title. */
export const maxTitleCharacters = 1_000;

/** Characters of a reference's file id: above it no file has one. */
export const maxFileIdLength = 100;

/** Turns of a submission that finds its idempotency slot taken, and then free again: each is another caller's refusal. */
export const maxSubmitTurns = 8;
/** For bringing a job's references in, whether or not its caller still waits: seven of 10 s each and their decoding, in ms. */
export const importTimeoutMs = 120_000;
/**
 * A `reserving` job belongs to the request that made it for so long after its last word, in ms: then it is rejected, within the
 * contract's 5 s.
 */
export const reservingLeaseMs = 4_500;
/** How often a submission says that it still lives, in ms: one such word may be lost. */
export const reservingBeatMs = 1_500;
/** When billing asks about a job's hold, counted from the job's making: by then nearly every submission has ended, in ms. */
export const holdCheckMs = 60_000;
/** How long billing is told to keep the hold of a job that is not yet accepted, in ms. */
export const keepReservingMs = 60_000;
/** Allowed for a submission until its acceptance, in ms: far more than its import and every new turn of it take. */
const maxReservingMs = 3_600_000;

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
/**
 * How long a job waits for the operator to pay, where all its upstreams say that their account is empty, in ms: time to react to the alert, and
 * less than the 285 s for which OpenAI's clients wait for pictures, so that these hear why there are none.
 */
export const maxEmptyMs = 240_000;
/**
 * How long a lost worker may still bring an answer that can come to it alone, once its lease is over, in ms: longer than a store's change of
 * its primary takes, and short enough that the job is decided within the contract's two minutes.
 */
export const lostAnswerMs = 60_000;
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

/** Jobs of each kind that one process renders itself at once where nothing else is said: fewer keep a machine busy. */
export const defaultWorkers = 4;
/** Most that may be said: each holds a lease, and what it renders in memory. */
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
/**
 * Waiting groups of accounts that run nothing, after which a claim looks no further: no account runs fewer, and the next
 * claim goes on behind them. So a claim costs the same with a hundred waiting accounts as with a hundred thousand.
 */
export const enoughIdleGroups = 64;
/** Lost running jobs of a kind looked at for one claim, longest lost first. */
export const maxLostJobs = 100;

/** How often due jobs are looked for, by index, in ms. */
export const sweepIntervalMs = 500;
/** Due jobs taken at a look. */
export const sweepBatch = 100;
/** Due jobs driven on at once: billing and blobs are not run over after an outage. */
export const sweepConcurrency = 16;
/** A job that was taken by a sweeper is looked at again after this, in ms: the sweeper that took it may have died. */
export const sweepRetryMs = 4_000;
/** A job whose wake-up is not known to be published is taken up after this, in ms (the contract: within 2 s). */
export const unpublishedMs = 1_000;
/** First pause until a queued job's wake-up is published again, in ms; doubled each time. */
export const republishMs = 10_000;
/** Longest such pause, in ms: workers look for themselves too, so this only speeds up what a lost wake-up slowed. */
export const maxRepublishMs = 300_000;
/** When a job that stands between two steps (settling, failing) is taken up, in ms (the contract: within 5 s). */
export const stepDueMs = 3_000;
/**
 * How long the record of a rejected submission stays, for a caller that was joining it, in ms: longer than an import takes. It costs
 * nothing, so the rate of requests alone bounds how many there are: 18,000 of an account, of 3 KB.
 */
export const rejectedKeptMs = 3 * 60_000;
/**
 * Failed jobs of one account that are kept, of each kind, the newest: they cost nothing, so that nothing else bounds how many an
 * account makes. 3,000 are a hundred a day of the usual retention.
 */
export const maxFailedJobs = 3_000;
/** Of those beyond, so many go with each further failure: one more than one, so that there become fewer. */
export const retiredAtOnce = 10;
/** How long what is left of a deleted job without an idempotency key stays, so that a listing can go on behind it, in ms. */
export const deletedKeptMs = 3_600_000;
/** How often a worker looks whether its jobs were cancelled, in ms (the contract: within about a second). */
export const cancelLookMs = 500;
/** How long a cancelled attempt waits for the upstream to name the task that it was just asked for, in ms; then it is cut off. */
export const cancelGraceMs = 10_000;
/** For telling an upstream that a task is cancelled, in ms: well below the edge's deadline, for the caller's answer waits. */
export const cancelUpstreamMs = 4_000;
/** Bytes of what its caller wrote and its model's call that a failed job keeps, for an operator to repeat it; of more it keeps nothing. */
export const maxFailedRequestBytes = 16 * 1024;

/** How often open jobs are counted, for the operator's metrics, in ms: about as often as metrics are read. */
export const censusIntervalMs = 15_000;
/** How often blobs are looked through for what no owner needs, in ms: well inside the contract's 24 h. */
export const collectIntervalMs = 3_600_000;
/** Least age of a blob to be collected, in ms: twice the longest time between an object's storing and its job's end. */
export const minCollectAgeMs = 2 * maxRunningMs;

/** Jobs a page, where the caller says nothing, and at most. */
export const pageSizes = {
  key: { default: 20, most: 100 },
  account: { default: 100, most: 1_000 },
} as const;
/**
 * Bytes of what callers wrote (their metadata) in one page of jobs; then it ends, and the next begins. A page is made and sent whole,
 * and with this has a megabyte at most.
 */
export const maxPageBytes = 512 * 1024;
/** Jobs of a list that are read in one turn of the event loop, or in one batch of MongoDB: one may have 650 KB, which is some ms. */
export const jobsReadAtOnce = 4;
/** Silence of a watch after which it sends a heartbeat (the contract's), in ms. */
export const watchHeartbeatMs = 15_000;
/** How often a watch looks at its job's mark, in ms: changes made by another process are seen this late, and {@link sharedLookMs}. */
export const watchPollMs = 750;
/** What one watch has read of a job, or of the marks of all watched jobs, is news enough for the others, in ms. */
export const sharedLookMs = 250;
/**
 * Watches of one process: each asks for its job's mark every {@link watchPollMs}. An account that has its share is refused the next
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

/** Waiting jobs read at one look, by index alone: a lane of more is left behind with the next look. */
export const claimPage = 100;
/** The last place in the line of waiting jobs that callers are told: from there on it says little. */
export const maxQueuePosition = 1_000;
/** Waiting jobs read at one look at the line, by index alone; of one group of them no more, for none behind them is told its place. */
export const linePage = maxQueuePosition;
/** Such looks for one picture of the line: some ms of a database's time. Where more wait, no place is told. */
export const maxLinePages = 16;
/** Waiting accounts in a picture of the line; each is looked up once. Where more wait, no place is told. */
export const maxLineAccounts = 1_000;
/** How long a process tells places by one picture of a kind's line, in ms. */
export const lineLookMs = 1_000;
/** Completed jobs of a kind that tell how long those of one line take, the newest: a few of each of some upstreams. */
export const measuredJobs = 128;
/** How long a process goes by one reading of these, in ms. */
export const measuredLookMs = 15_000;

/** Searches of one claim; each but the last found a job, or a place, that another worker took meanwhile. */
export const maxClaimRounds = 64;
/** Turns of one transition; each but the last met a change made by another process meanwhile. */
export const maxTransitionRounds = 64;
/** Turns of an insert whose slot is taken, and then free again: each is another's refusal. */
export const maxInsertRounds = 8;
/**
 * Changes of a job that it remembers by name. A process that had no answer asks within 10 s whether its change was made;
 * in that time a job changes twenty times at most: its progress each second, its lease, its steps.
 */
export const changesKept = 32;
/** Looks of one sweep at the due jobs of a state; each but the last met another sweeper. What is left, the next one finds. */
export const maxTakeRounds = 16;

/** References fetched, decoded and stored at once in one process: each has up to 20 MiB in memory. */
export const importShare: FairShareBounds = {
  places: 32,
  // Slow hosts that an account names hold up its own jobs alone; seven references a job.
  each: { places: 7, waiting: 1_024 },
  eachUnpaid: { places: 7, waiting: 28 },
  // Below the edge's deadline of a submission.
  waitMs: 60_000,
};
/** Attempts at one reference whose file is deleted, or given up, while the job takes hold of it. */
export const maxImportTurns = 5;

/** Jobs, uploads and speeches of a closing account that one call erases, of each: some seconds of a slow store's time. */
export const eraseBatch = 50;
