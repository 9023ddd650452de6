import type { FairShareBounds } from "#kit/share/fair-share.ts";
import { clockSlackMs } from "#kit/time/lease-time.ts";

/** Levels of nesting in a body: no schema or conversation comes near it, and every recursive walk stays flat. */
export const maxJsonDepth = 128;

/** Tools in one request: eight times what upstreams take; each is checked, rewritten and repeated in the answer. */
export const maxTools = 1_024;

/** Images in one request (the contract's). */
export const maxImages = 20;
/** Bytes of one image and of all inline images of a request together (the contract's): 20 MiB. */
export const maxImageBytes = 20 * 1024 * 1024;
/** Pixels of one image (the contract's): what a decoder can hold in its memory. */
export const maxImagePixels = 50_000_000;
/** Images of one request checked or fetched at once: the next request's images get their turn too. */
export const imagesAtOnce = 4;
/** PDFs and sounds in one request: as many as images. */
export const maxFileParts = 20;
/** Bytes of one PDF or sound, and of all of a request together: as many as of images, for both are held while a request lasts. */
export const maxFileBytes = 20 * 1024 * 1024;
/** Characters of a file's name: what file systems take. */
export const maxFileNameCharacters = 255;
/**
 * Tokens of a second of sound, where the catalog does not say (`audioTokensPerSecond`): 10 at OpenAI, for an estimate; 25 and 32 are
 * taken by Qwen's and Google's models, so for a hold 50.
 */
export const usualSecondTokens = { estimate: 10, most: 50 } as const;
/** Tokens of the shortest sound in a hold, where the catalog does not say: encoders fill up to 30 seconds, at 25 a second. */
export const usualSoundTokensAtLeast = 768;

/** Sounds measured at once, and of one account that wait, each in memory; and how long, in ms. Two, so that one account leaves a place to the others. */
export const measuringShare: FairShareBounds = {
  places: 2,
  each: { places: 1, waiting: 32 },
  waitMs: 30_000,
};
/** For one sound, the thread's start included, in ms. The largest takes a core a tenth of a second; some broken ones never end. */
export const measuringTimeoutMs = 3_000;
/** Milliseconds for reading a file of the account from media. */
export const readFileTimeoutMs = 10_000;

/** Opaque states in one input: a long agent session has hundreds; a look-up of more holds up the store. */
export const maxOpaqueStates = 10_000;
/** Days for which the maker of opaque state is remembered (the contract's), in ms. */
export const opaqueStateKeptMs = 30 * 24 * 3_600_000;

/**
 * Output tokens to which the bound of a request without `max_output_tokens` may fall where wallet or key cannot pay for
 * the model's maximum (the contract's): with fewer, an answer breaks off before it is of use.
 */
export const leastOutputTokens = 1_024;

/** How often running requests are looked through for one that is due; a beat or a budget is late by at most this. */
export const beatTickMs = 100;
/** Output between two checkpoints, in characters: about 256 tokens of English (docs/money.md). */
export const checkpointCharacters = 1_024;
/**
 * How long upstream is read on for its usage when the caller has left after the last of the output (the contract's), in ms:
 * models report it some hundred ms later.
 */
export const usageWaitMs = 2_000;

/**
 * A pause within an answer's text that is this long, in ms, is silence (see `hiddenTokensPerSecond` of the catalog): the slowest models
 * say a word in less.
 */
export const longestPauseMs = 2_000;
/**
 * A caller that took nothing has caught up once upstream was waited for this long in all, in ms: what lies in the kernels' buffers
 * comes with hardly a wait.
 */
export const caughtUpMs = 100;
/**
 * Tokens that an item of reasoning is at least which shows neither text nor a seal, however quickly it came: OpenAI counts hidden
 * reasoning in steps of 64.
 */
export const silentItemTokens = 64;
/**
 * Input tokens that each call of a tool which upstream carries out is taken to have added, where upstream reports no usage: what a
 * web search with its pages does, which is the most of the usual ones.
 */
export const hostedCallTokens = 20_000;

/** Pause between two attempts at ending a request whose store or billing is away; a lease bounds how many there are. */
export const closeRetryMs = 1_000;
/**
 * How long a settled request waits for others to be finished with in one command of MongoDB, in ms. No caller waits for it; a
 * process that is killed meanwhile leaves so many more to the sweeper, which finds them settled.
 */
export const finishLingerMs = 100;
/** How often answers and makers whose time is over are looked for, in ms: a read of one looks at its time, too. */
export const forgetIntervalMs = 10_000;
/** Answers and makers of opaque state deleted in one round: faster than any one process makes them, in some ms. */
export const forgetBatch = 1_000;
/** How long what an upstream reported beyond belief is shown to the operator, in ms: a month of accounts. */
export const reviewKeptMs = 31 * 24 * 3_600_000;
/**
 * Of a request that an older release put in review with its hold: how long billing is told to keep the hold, and how often it is
 * looked at.
 */
export const keepReviewMs = 10 * 60_000;
/** No such request is put off for longer by a right clock, in ms. */
export const longestReviewMs = keepReviewMs + clockSlackMs;
/** Requests in one answer of ListReviews (the contract's). */
export const maxReviews = 1_000;

/** How long a complete answer is kept for its idempotency key (the contract's). */
export const answerKeptMs = 24 * 3_600_000;
/** Bytes of an answer that is kept: a stored document has 16 MiB in the least of our stores, with room for the rest. */
export const maxKeptAnswerBytes = 8 * 1024 * 1024;
/**
 * Bytes of kept answers of one account: 32 of the largest, or a day of 65,000 of 4 KiB. Answers repeat instructions, tools and
 * schemas, which cost next to nothing where they are cached, so by money alone one account could fill the store's disk.
 */
export const maxKeptBytesPerAccount = 256 * 1024 * 1024;
/** Kept bytes are counted by the hour in which their time is over: at most 25 numbers an account, and none is ever taken back. */
export const keptCountMs = 3_600_000;
/**
 * Callers that join a request in flight, beside the one that began it: those of one client that asks again before it hangs up are two or
 * three, those of its processes that start together some tens. Each piece of a stream is written to all of them in one turn of the event loop.
 */
export const maxJoiners = 64;
/** Bytes of a running stream kept for duplicates that join it late: about 100,000 deltas of one token. */
export const maxReplayBytes = 24 * 1024 * 1024;
/**
 * Such bytes of all running streams of one account: two of the longest and many of usual length. An account may have 1,000
 * streams open, and a few accounts together may use less than a process has.
 */
export const maxReplayBytesPerAccount = 64 * 1024 * 1024;
/** Such bytes of a process: four accounts at their bound, beside the bodies that it holds. */
export const maxReplayBytesInAll = 256 * 1024 * 1024;
/** Bytes of an answer that is repeated as a stream which go out together, where its events are not larger. */
export const replayPieceBytes = 256 * 1024;
/**
 * Bytes of kept answers that are on their way to callers as streams, which cost nothing: for each account one of the largest, which
 * becomes about three times as many bytes of events, and many of usual length. Others of it wait, a few at a time: each was read.
 */
export const replayShare: FairShareBounds = {
  places: 128 * 1024 * 1024,
  each: { places: 32 * 1024 * 1024, waiting: 16 },
  waitMs: 30_000,
};
/** Bytes of a stream for each byte of the answer that it repeats: its events show each text, item and answer once more. */
export const replayFactor = 4;
/**
 * Bytes of large whole answers in memory, from before most of one is read until its caller has taken it: four of the largest that upstreams give, or
 * a thousand of a quarter MiB. Two of the largest for one account, one for one that is not known to pay. They were generated and are paid for, so as many
 * wait as there may be requests; each waits at its upstream, which gives up a reader that takes nothing after some minutes.
 */
export const answersInMemory: FairShareBounds = {
  places: 256 * 1024 * 1024,
  each: { places: 128 * 1024 * 1024, waiting: 10_000 },
  eachUnpaid: { places: 64 * 1024 * 1024, waiting: 10_000 },
  waitMs: 120_000,
};
/** Bytes of such an answer that go to its caller at once: what takes nothing of them for 5 s is slower than 13 KB a second. */
export const answerPieceBytes = 64 * 1024;
/**
 * Large answers worked on at once. They were generated, and mostly paid for: as many wait as there may be requests, as long as a request
 * takes. Two at once, so that one account's answers leave a place to the others.
 */
export const largeAnswerShare: FairShareBounds = {
  places: 2,
  each: { places: 1, waiting: 10_000 },
  waitMs: 600_000,
};
/** For one answer, the thread's start included, in ms: twenty times what the largest takes, so that a busy machine ends no sound thread. */
export const largeAnswerTimeoutMs = 60_000;
/** Times that an intent tries for a slot in which it finds an answer whose time is over: others may be as quick. */
export const maxOpenTries = 8;
/** Makers of opaque state in one command: some hundred KB. */
export const makersAtOnce = 1_000;
/** How often a duplicate looks whether another process has finished. */
export const waitPollMs = 200;
/** How long a duplicate waits for another process: longer than a dead one's lease and the sweeper's round. */
export const waitElsewhereMs = 40_000;
/** Hint of the refusal after that wait. */
export const waitRetryMs = 5_000;

/** Ten times the bound is beyond any tokenizer, template or vision model: the number is wrong. */
export const believableFactor = 10;

/** Characters that the counting thread is given at once: some ms of its time, and 0.05 ms of the event loop's to hand over. */
export const tokenBatchCharacters = 32 * 1024;
/** Pieces of text in such a batch: short ones cost their number. */
export const tokenBatchPieces = 1_024;
/** Batches with the counting thread at once: one that it works on, and one that it finds when it is done. */
export const tokenBatchesAtOnce = 2;
/** How long a batch waits for its account's turn, in ms: by then what waits for the count has gone on with a guess. */
export const countTurnWaitMs = 30_000;
/**
 * Characters of a token, at most, over a whole input: prose has four to five, source code three, tables of dashes up to ten. What
 * does not fit even so is refused without counting it.
 */
export const mostCharactersPerToken = 16;
/** Counts under way at once, two for a request at most: more than a process has requests. Each has a batch waiting. */
export const maxCounts = 10_000;
/**
 * Requests whose input is counted at once before there is any money for it, so that this costs their account no more than a share of
 * the thread. Of one account two, so that a long prompt keeps no shorter one waiting; as many wait as an account with many agents sends
 * in a moment, and for as long as no input takes that fits a window: that is half a second.
 */
export const contextCountShare: FairShareBounds = {
  places: maxCounts,
  each: { places: 2, waiting: 64 },
  waitMs: 30_000,
};
/** For one batch, loading included, in ms: a hundred times what it takes, so that a busy machine ends no sound thread. */
export const tokenAnswerTimeoutMs = 10_000;
/** Threads that a batch is tried on: what ends two of them would end a third. */
export const tokenBatchTries = 2;
/** What a checkpoint or an answer's end waits for its counts, in ms: both must be written well within the lease. */
export const countPatienceMs = 10_000;
/**
 * The counting thread is loaded when a request is this old, in ms, a second before its first checkpoint: one that waited for that would
 * come late, and what a process had not written down when it was killed is charged to no caller.
 */
export const countAheadMs = 1_000;
/** How often that is seen to, in ms: less than the thread lives on without work. */
export const countAheadEveryMs = 30_000;
/** What a stopping process waits for counts that are still under way, in ms: a prompt of 10 MiB. */
export const stopCountsMs = 2_000;

/** Characters of the words that go with a sound: a few hundred tokens, which no upstream charges for. */
export const maxSoundPromptCharacters = 4_096;
/** Kept answers of a closing account that one call erases: up to 64 MiB each. */
export const eraseBatch = 50;
