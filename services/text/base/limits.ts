// The bounds of the text service, with the reason for each.

import type { FairShareBounds } from "#kit/share/fair-share.ts";
import { clockSlackMs } from "#kit/time/lease-time.ts";

/** Levels of nesting in a body. No schema or conversation comes near it, and every recursive walk stays flat. */
export const maxJsonDepth = 128;

/** Tools in one request: eight times the maximum of upstreams. Each is checked, rewritten and repeated in the answer. */
export const maxTools = 1_024;

/** Images in one request (the contract's). */
export const maxImages = 20;
/** Bytes of one image and of all inline images of a request together (the contract's): 20 MiB. */
export const maxImageBytes = 20 * 1024 * 1024;
/** Pixels of one image (the contract's). A decoder can hold this many in its memory. */
export const maxImagePixels = 50_000_000;
/** Images of one request that are checked or fetched at once. So the next request's images have their turn too. */
export const imagesAtOnce = 4;
/** PDFs and audio files in one request: as many as images. */
export const maxFileParts = 20;
/**
 * Bytes of one PDF or audio file, and of all in a request together. They are as many as those of images, because both are in memory
 * while a request lasts.
 */
export const maxFileBytes = 20 * 1024 * 1024;
/** Characters of a file's name: the maximum of file systems. */
export const maxFileNameCharacters = 255;
/**
 * Tokens of a second of audio, where the catalog does not say it (`audioTokensPerSecond`). The estimate is OpenAI's 10. Models of Qwen
 * and Google take 25 and 32, so a hold is for 50.
 */
export const usualSecondTokens = { estimate: 10, most: 50 } as const;
/**
 * Tokens of the shortest audio in a hold, where the catalog does not say it. Encoders fill audio up to 30 seconds, at 25 tokens a
 * second.
 */
export const usualSoundTokensAtLeast = 768;

/**
 * Audio files that are measured at once, those of one account that wait in memory, and how long they wait, in ms. There are two places,
 * so that one account leaves one to the others.
 */
export const measuringShare: FairShareBounds = {
  places: 2,
  each: { places: 1, waiting: 32 },
  waitMs: 30_000,
};
/**
 * Milliseconds for one audio file, with the thread's start. The largest takes a core a tenth of a second. Some broken files never end.
 */
export const measuringTimeoutMs = 3_000;
/** Milliseconds for reading a file of the account from media. */
export const readFileTimeoutMs = 10_000;

/** Opaque states in one input. A long agent session has hundreds. A look-up of more would hold up the store. */
export const maxOpaqueStates = 10_000;
/** Days for which the maker of opaque state is remembered (the contract's), in ms. */
export const opaqueStateKeptMs = 30 * 24 * 3_600_000;

/**
 * Output tokens to which the bound of a request without `max_output_tokens` may fall, where wallet or key cannot pay for the model's
 * maximum (the contract's). With fewer, an answer breaks off before it is of use.
 */
export const leastOutputTokens = 1_024;

/**
 * Output tokens to which the bound of a Messages request may fall, where wallet or key cannot pay for more. Its clients must name a
 * bound, and name the most that any model has. A bound up to this one is kept, or refused.
 */
export const leastWishedTokens = 4_096;

/** Interval at which running requests are searched for one that is due. A checkpoint or the end of a wait is late by at most this. */
export const beatTickMs = 100;
/** Output between two checkpoints, in characters: about 256 tokens of English (docs/money.md). */
export const checkpointCharacters = 1_024;
/**
 * How long an upstream is read on for its usage where the caller has left after the last output (the contract's), in ms. Models report
 * usage some hundred ms later.
 */
export const usageWaitMs = 2_000;

/**
 * A pause in an answer's text that is this long, in ms, is silence (see `hiddenTokensPerSecond` of the catalog). The slowest models
 * write a word in less.
 */
export const longestPauseMs = 2_000;
/**
 * A caller that took nothing has caught up when genmesh has waited for the upstream this long in all, in ms. Bytes from the kernels'
 * buffers come almost without a wait.
 */
export const caughtUpMs = 100;
/**
 * The fewest tokens of an item of reasoning that shows neither text nor sealed state, after any time. OpenAI counts hidden reasoning in
 * steps of 64.
 */
export const silentItemTokens = 64;
/**
 * Input tokens that count for each call of a tool which the upstream carries out, where it reports no usage. A web search with its
 * pages adds this many, the most of the usual tools.
 */
export const hostedCallTokens = 20_000;
/** Calls of the upstream's tools for which a request is held, where the catalog of an earlier release does not say. */
export const usualToolCalls = 8;

/** Pause between two attempts to end a request whose store or billing is away. The lease bounds their number. */
export const closeRetryMs = 1_000;
/**
 * How long a settled request waits to be finished together with others in one command of MongoDB, in ms. No caller waits for that. A
 * process that is killed meanwhile leaves more of them to the sweep, which finds them settled.
 */
export const finishLingerMs = 100;
/** Interval of the search for answers and makers whose time is over, in ms. A read of one checks its time too. */
export const forgetIntervalMs = 10_000;
/** Answers and makers of opaque state that are deleted in one round. That is faster than any process makes them, and takes some ms. */
export const forgetBatch = 1_000;
/** How long a report of an upstream's that cannot be true is shown to the operator, in ms: a month of accounts. */
export const reviewKeptMs = 31 * 24 * 3_600_000;
/**
 * For a request that an earlier version put in review with its hold: how long billing must keep the hold, and the interval of looking
 * at it.
 */
export const keepReviewMs = 10 * 60_000;
/** The longest that a process with a right clock puts such a request off, in ms. */
export const longestReviewMs = keepReviewMs + clockSlackMs;
/** Requests in one answer of ListReviews (the contract's). */
export const maxReviews = 1_000;

/** How long a complete answer is kept for its idempotency key (the contract's). */
export const answerKeptMs = 24 * 3_600_000;
/** Bytes of an answer that is kept. A stored document has 16 MiB in the smallest store, so that other fields have room too. */
export const maxKeptAnswerBytes = 8 * 1024 * 1024;
/**
 * Bytes of kept answers of one account: 32 of the largest, or a day of 65,000 of 4 KiB. Answers repeat instructions, tools and schemas,
 * which cost almost nothing where they are cached. So money alone would not keep one account from filling the store's disk.
 */
export const maxKeptBytesPerAccount = 256 * 1024 * 1024;
/**
 * Kept bytes are counted by the hour in which their time is over. That makes at most 25 numbers an account, and none is ever reduced.
 */
export const keptCountMs = 3_600_000;
/**
 * Callers that join a request in flight, beside the caller that began it. A client that repeats its request before it hangs up makes
 * two or three. Processes of a client that start together make some tens. Each piece of a stream is written to all of them in one turn
 * of the event loop.
 */
export const maxJoiners = 64;
/**
 * Ms for which a stream with an idempotency key goes on without a caller, where the last one is gone. Clients that lost their connection
 * repeat a request after half a second to 8 s, so the repeat finds the stream and pays nothing more.
 */
export const repeatWaitMs = 10_000;
/** Bytes of a running stream that are kept for equal requests that join it late: about 100,000 deltas of one token. */
export const maxReplayBytes = 24 * 1024 * 1024;
/**
 * Such bytes of all running streams of one account: two of the longest and many of usual length. An account may have 1,000 streams
 * open, and a few accounts together must use less memory than a process has.
 */
export const maxReplayBytesPerAccount = 64 * 1024 * 1024;
/** Such bytes of a process: four accounts at their bound, beside the bodies in memory. */
export const maxReplayBytesInAll = 256 * 1024 * 1024;
/** Bytes of a replayed answer that are sent together, where its events are not larger. */
export const replayPieceBytes = 256 * 1024;
/**
 * Bytes of kept answers that are on their way to callers as streams, which cost nothing. Each account may have one of the largest,
 * which becomes about three times as many bytes of events, and many of usual length. A few others of an account wait. Each of these was
 * read already.
 */
export const replayShare: FairShareBounds = {
  places: 128 * 1024 * 1024,
  each: { places: 32 * 1024 * 1024, waiting: 16 },
  waitMs: 30_000,
};
/** Bytes of a stream for each byte of the replayed answer. Its events show each text, item and answer again. */
export const replayFactor = 4;
/**
 * Bytes of large whole answers in memory, from before most of one is read until its caller has taken it. That is four of the largest
 * that upstreams give, or a thousand of a quarter MiB. An account may have two of the largest, and one if it is not known to pay. The
 * answers were generated and are paid for, so as many wait as there may be requests. Each waits at its upstream, which gives up a
 * reader that takes nothing after some minutes.
 */
export const answersInMemory: FairShareBounds = {
  places: 256 * 1024 * 1024,
  each: { places: 128 * 1024 * 1024, waiting: 10_000 },
  eachUnpaid: { places: 64 * 1024 * 1024, waiting: 10_000 },
  waitMs: 120_000,
};
/** Bytes of such an answer that go to its caller at once. A caller that takes nothing for 5 s is slower than 13 KB a second. */
export const answerPieceBytes = 64 * 1024;
/**
 * Large answers that are worked on at once. They were generated, and most are paid for. So as many wait as there may be requests, for
 * as long as a request takes. There are two places, so that one account's answers leave one to the others.
 */
export const largeAnswerShare: FairShareBounds = {
  places: 2,
  each: { places: 1, waiting: 10_000 },
  waitMs: 600_000,
};
/**
 * Milliseconds for one answer, with the thread's start: twenty times the time of the largest, so that a busy machine ends no healthy
 * thread.
 */
export const largeAnswerTimeoutMs = 60_000;
/** Times that an intent tries for a slot in which it finds an answer whose time is over. Other requests may be first each time. */
export const maxOpenTries = 8;
/** Makers of opaque state in one command: some hundred KB. */
export const makersAtOnce = 1_000;
/** Interval at which an equal request looks whether another process has finished. */
export const waitPollMs = 200;
/** How long an equal request waits for another process: longer than a dead one's lease and the sweep's round. */
export const waitElsewhereMs = 40_000;
/** The hint for a retry in the refusal after that wait. */
export const waitRetryMs = 5_000;

/** No tokenizer, template or vision model comes to ten times the bound. Such a number is wrong. */
export const believableFactor = 10;

/** Characters that the counting thread gets at once: some ms of its time, and 0.05 ms of the event loop's for handing them over. */
export const tokenBatchCharacters = 32 * 1024;
/** Pieces of text in such a batch. Each piece takes time, also a short one. */
export const tokenBatchPieces = 1_024;
/** Batches with the counting thread at once: one for its present work, and one that it finds after it. */
export const tokenBatchesAtOnce = 2;
/** How long a batch waits for its account's turn, in ms. By then the request that needs the count has gone on with a guess. */
export const countTurnWaitMs = 30_000;
/**
 * The most characters of a token over a whole input. Prose has four to five, source code three, tables of dashes up to ten. Input that
 * does not fit even at this rate is refused without a count.
 */
export const mostCharactersPerToken = 16;
/** Counts that run at once, at most two for a request, which is more than a process has requests. Each has a batch waiting. */
export const maxCounts = 10_000;
/**
 * Requests whose input is counted at once before they have a hold. So counting costs their account no more than a share of the thread.
 * An account has two places, so that a long prompt makes no shorter one wait. As many wait as an account with many agents sends in a
 * moment. They wait longer than any input takes that fits a window, which is half a second.
 */
export const contextCountShare: FairShareBounds = {
  places: maxCounts,
  each: { places: 2, waiting: 64 },
  waitMs: 30_000,
};
/** Milliseconds for one batch, with loading: a hundred times its usual time, so that a busy machine ends no healthy thread. */
export const tokenAnswerTimeoutMs = 10_000;
/** Threads on which a batch is tried. A batch that ends two of them would end a third. */
export const tokenBatchTries = 2;
/** How long a checkpoint or an answer's end waits for its counts, in ms. Both must be written well within the lease. */
export const countPatienceMs = 10_000;
/**
 * The counting thread is loaded when a request is this old, in ms, a second before its first checkpoint. A checkpoint that waited for
 * the loading would come late. Output without a checkpoint is charged to no caller if the process is killed.
 */
export const countAheadMs = 1_000;
/** Interval of that check, in ms. It is shorter than the time after which a thread without work ends. */
export const countAheadEveryMs = 30_000;
/** How long a stopping process waits for running counts, in ms: the time for a prompt of 10 MiB. */
export const stopCountsMs = 2_000;

/** Characters of the prompt that comes with audio: a few hundred tokens, which no upstream charges for. */
export const maxSoundPromptCharacters = 4_096;
/** Kept answers of a closing account that one call deletes: up to 64 MiB each. */
export const eraseBatch = 50;

/** Tokens that an upstream of Messages adds once for the tools of a request. Anthropic names 290 to 804, by model. */
export const messagesToolTokens = 1_024;

/** Milliseconds for all that one probe of an upstream reads. The console waits for 30 s. */
export const probeMs = 25_000;
/** Probes at once in a process, and how many wait for how long. Operators begin them by hand. */
export const probeShare: FairShareBounds = {
  places: 2,
  each: { places: 2, waiting: 4 },
  waitMs: 3_000,
};
