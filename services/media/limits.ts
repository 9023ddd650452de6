// The bounds and times of jobs, from submission to deletion, each with its unit and reason. Files, speech and webhooks have
// limits of their own.

import type { FairShareBounds } from "#kit/share/fair-share.ts";

/**
 * Bytes of a video that gets a manifest: the largest that is fetched. All of it is on the disk meanwhile, once for each video that a
 * worker makes at the same time.
 */
export const maxMarkedBytes = 512 * 1024 * 1024;

/** Characters of the title of a piece of music. A longer text is no title. */
export const maxTitleCharacters = 1_000;

/** Characters of a reference's file id. No file has a longer one. */
export const maxFileIdLength = 100;

/** Turns of a submission that finds its idempotency slot taken, and then free again. Each of them is a refusal of another caller. */
export const maxSubmitTurns = 8;
/** Milliseconds for importing a job's references, whether or not its caller still waits: seven of 10 s each and their decoding. */
export const importTimeoutMs = 120_000;
/**
 * A `reserving` job belongs to the request that made it for this many ms after its last beat. Then it is rejected, within the 5 s of
 * the API's contract.
 */
export const reservingLeaseMs = 4_500;
/** Time between two beats of a submission, in ms. One beat may be lost. */
export const reservingBeatMs = 1_500;
/** When billing asks about a job's hold, in ms after the job was made. Nearly every submission has ended by then. */
export const holdCheckMs = 60_000;
/** How long billing is asked to keep the hold of a job that is not accepted yet, in ms. */
export const keepReservingMs = 60_000;
/** Most milliseconds of a submission until its acceptance: far more than its import and all its turns take. */
const maxReservingMs = 3_600_000;

/** Milliseconds from acceptance to the first work, by the API's contract. */
export const maxQueuedMs = 24 * 3_600_000;
/** Milliseconds from the first work to the end, by the API's contract. */
export const maxRunningMs = 30 * 60_000;
/** How long an output that a job refers to is kept at least, in ms: the longest time from the job's submission to its end. */
export const lentMs = maxReservingMs + maxQueuedMs + maxRunningMs;
/** A worker that gives no sign for this many ms has lost its job, by the API's contract. */
export const leaseMs = 30_000;
/** First pause of a job that no upstream took, in ms. It doubles each time. */
export const firstWaitMs = 2_000;
/** Longest such pause, even where `Retry-After` asks for more, in ms. So a wrong answer does not cost a job its day. */
export const maxWaitMs = 300_000;
/**
 * How long a job waits for the operator to pay, where all its upstreams answer that their account is empty, in ms. That is time to
 * react to the alert. It is less than the 285 s for which OpenAI's clients wait for images, so these get the reason for the failure.
 */
export const maxEmptyMs = 240_000;
/**
 * How long a lost worker may still bring an answer that only it can get, in ms after its lease is over. That is longer than a store's
 * change of its primary takes. It is short enough that the job is decided within the two minutes of the API's contract.
 */
export const lostAnswerMs = 60_000;
/** Time between two renewals of a worker's leases, in ms. Two may fail. */
export const heartbeatMs = 8_000;
/** A worker that could not renew a lease gives up this many ms before others may claim the job. */
export const leaseMarginMs = 4_000;
/** Attempts that may be lost, by the API's contract. The third lost one fails the job. */
export const maxAttempts = 3;
/** First pause after an upstream's answer stayed unknown, in ms. It doubles each time. */
export const setAsideMs = 2_000;
/** Longest such pause, in ms. */
export const maxSetAsideMs = 60_000;
/** Least time between two stored reports of progress of one job, in ms. A caller that polls every 3 s sees each step. */
export const progressEveryMs = 1_000;
/** Steps of its life that a job keeps: the newest ones, by the API's contract. */
export const maxEvents = 100;

/** Jobs of each kind that one process renders itself at once, by default. Fewer keep a machine busy. */
export const defaultWorkers = 4;
/** The highest allowed value. Each job holds a lease, and the memory of its rendering. */
export const maxWorkers = 1_000;
/**
 * Jobs of a kind that one process has at one upstream that renders elsewhere, where the catalog gives it no `maxConcurrent`. They
 * mostly wait. Each has a lease that is renewed, and a connection or an occasional look at its task.
 */
export const upstreamJobs = 64;
/** Jobs of one account among these. Where an upstream does not answer, its other callers still have places. */
export const upstreamJobsEach = 48;
/**
 * Time between two looks of an idle worker for due jobs without a wake-up, in ms. Queues forget wake-ups, and model limits become free
 * at other workers.
 */
export const claimPollMs = 2_000;
/** Pause of a worker whose store or queue does not answer, in ms. */
export const claimRetryMs = 1_000;
/** Waiting groups (model, upstream, account) that one claim looks at. Beyond that a claim goes on where the last one ended. */
export const maxClaimGroups = 2_000;
/**
 * After this many waiting groups of accounts without a running job, a claim looks no further. No account runs fewer jobs, and the next
 * claim goes on behind them. So a claim costs the same with a hundred waiting accounts as with a hundred thousand.
 */
export const enoughIdleGroups = 64;
/** Lost running jobs of a kind that one claim looks at, longest lost first. */
export const maxLostJobs = 100;

/** Time between two searches for due jobs, by index, in ms. */
export const sweepIntervalMs = 500;
/** Due jobs that are taken in one look. */
export const sweepBatch = 100;
/** Due jobs that are driven on at once. So billing and blobs are not overloaded after an outage. */
export const sweepConcurrency = 16;
/** A job that a sweeper took is looked at again after this, in ms, because that sweeper may have died. */
export const sweepRetryMs = 4_000;
/** A job whose wake-up may not have been published is taken up after this, in ms. The API's contract says within 2 s. */
export const unpublishedMs = 1_000;
/** First pause until a queued job's wake-up is published again, in ms. It doubles each time. */
export const republishMs = 10_000;
/** Longest such pause, in ms. Workers look for jobs themselves too, so this only shortens the delay after a lost wake-up. */
export const maxRepublishMs = 300_000;
/** When a job between two steps (settling, failing) is taken up, in ms. The API's contract says within 5 s. */
export const stepDueMs = 3_000;
/**
 * How long the record of a rejected submission stays, in ms, for a caller that was joining it. That is longer than an import takes. It
 * costs nothing, so only the rate of requests bounds their number: 18,000 of an account, of 3 KB.
 */
export const rejectedKeptMs = 3 * 60_000;
/**
 * Failed jobs of one account that are kept, of each kind: the newest. They cost nothing, so nothing else bounds how many an account
 * makes. 3,000 are a hundred a day of the usual retention.
 */
export const maxFailedJobs = 3_000;
/** This many of the surplus are removed with each further failure. It is more than one, so that their number falls. */
export const retiredAtOnce = 10;
/** How long the rest of a deleted job without an idempotency key stays, in ms, so that a listing can go on behind it. */
export const deletedKeptMs = 3_600_000;
/** Time between two checks of a worker whether its jobs were cancelled, in ms. The API's contract says within about a second. */
export const cancelLookMs = 500;
/** How long a cancelled attempt waits for the upstream to name the task that was just requested, in ms. Then the request is cut off. */
export const cancelGraceMs = 10_000;
/**
 * Milliseconds for asking an upstream to cancel a task. That is well below the edge's deadline, because the caller's answer waits for
 * it.
 */
export const cancelUpstreamMs = 4_000;
/**
 * Bytes of its caller's texts and its model's call that a failed job keeps, so that an operator can repeat it. Where there are more, it
 * keeps none.
 */
export const maxFailedRequestBytes = 16 * 1024;

/** Time between two counts of open jobs, for the operator's metrics, in ms. Metrics are read about as often. */
export const censusIntervalMs = 15_000;
/** Time between two searches for blobs that no owner needs, in ms. That is well inside the 24 h of the API's contract. */
export const collectIntervalMs = 3_600_000;
/** Least age of a blob to be collected, in ms: twice the longest time between storing an object and its job's end. */
export const minCollectAgeMs = 2 * maxRunningMs;

/** Jobs a page, by default, and at most. */
export const pageSizes = {
  key: { default: 20, most: 100 },
  account: { default: 100, most: 1_000 },
} as const;
/**
 * Bytes of callers' texts (their metadata) in one page of jobs. Beyond them the page ends, and the next begins. A page is made and sent
 * whole, and has a megabyte at most with this.
 */
export const maxPageBytes = 512 * 1024;
/** Jobs of a list that are read in one turn of the event loop, or in one batch of MongoDB. One may have 650 KB, which takes some ms. */
export const jobsReadAtOnce = 4;
/** A watch sends a heartbeat after this many ms of silence, by the API's contract. */
export const watchHeartbeatMs = 15_000;
/**
 * Time between two looks of a watch at its job's mark, in ms. Changes made by another process are seen after at most this and {@link
 * sharedLookMs}.
 */
export const watchPollMs = 750;
/** A watch's read of a job, or of the marks of all watched jobs, is new enough for the others for this many ms. */
export const sharedLookMs = 250;
/**
 * Watches of one process. Each reads its job's mark every {@link watchPollMs}. An account with its full share is refused a further one
 * at once. It can watch jobs one after the other, or read them.
 */
export const watchShare: FairShareBounds = {
  places: 2_048,
  each: { places: 256, waiting: 0 },
  eachUnpaid: { places: 64, waiting: 0 },
  waitMs: 0,
};
/** Characters of an operation id, by the API's contract. */
export const maxOperationIdLength = 128;

/** Waiting jobs that are read in one look, by index alone. A lane with more is left with the next look. */
export const claimPage = 100;
/** The last place in the line of waiting jobs that callers see. Later places would tell them little. */
export const maxQueuePosition = 1_000;
/**
 *
 * Waiting jobs that are read in one look at the line, by index alone. Further ones of one group are not read, because those behind them
 * have no shown place.
 */
export const linePage = maxQueuePosition;
/** Such looks for one reading of the line: some ms of a database's time. Where more jobs wait, no place is shown. */
export const maxLinePages = 16;
/** Waiting accounts in one reading of the line. Each is looked up once. Where more wait, no place is shown. */
export const maxLineAccounts = 1_000;
/** How long a process uses one reading of a kind's line, in ms. A reading that took long is used for longer. */
export const lineLookMs = 1_000;
/**
 * A reading is used for at least this many times as long as it took. So reading takes a tenth of the time at most, however long the line
 * is and however slowly a database reads it.
 */
export const lookShare = 9;
/** The most by which {@link lookShare} delays the next reading, in ms. Places and estimates change within seconds. */
export const maxLookPauseMs = 15_000;
/** The newest completed jobs of a kind, which show how long jobs of one line take: a few of each of some upstreams. */
export const measuredJobs = 128;
/** How long a process uses one reading of these, in ms. A reading that took long is used for longer. */
export const measuredLookMs = 15_000;

/** Searches of one claim. Each except the last found a job, or a place, that another worker took meanwhile. */
export const maxClaimRounds = 64;
/** Turns of one transition. Each except the last met a change made by another process meanwhile. */
export const maxTransitionRounds = 64;
/** Turns of an insert whose slot is taken, and then free again. Each of them is another caller's refusal. */
export const maxInsertRounds = 8;
/**
 * Changes of a job that it remembers by name. A process that got no answer asks within 10 s whether its change was made. In that time a
 * job changes at most twenty times: its progress each second, its lease, its steps.
 */
export const changesKept = 32;
/** Looks of one sweep at the due jobs of a state. Each except the last met another sweeper. The next sweep finds the rest. */
export const maxTakeRounds = 16;

/** References that one process fetches, decodes and stores at once. Each has up to 20 MiB in memory. */
export const importShare: FairShareBounds = {
  places: 32,
  // Slow hosts in an account's URLs delay only its own jobs. A job has at most seven references.
  each: { places: 7, waiting: 1_024 },
  eachUnpaid: { places: 7, waiting: 28 },
  // Below the edge's deadline for a submission.
  waitMs: 60_000,
};
/** Attempts at one reference whose file is deleted, or given up, while the job pins it. */
export const maxImportTurns = 5;

/** Jobs, uploads and speech of a closing account that one call erases, of each: some seconds of a slow store's time. */
export const eraseBatch = 50;
