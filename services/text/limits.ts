/** Levels of nesting in a body: no schema or conversation comes near it, and every recursive walk stays flat. */
export const maxJsonDepth = 128;
/** Characters of a model id: above it no catalog has one, and a refusal does not echo it. */
export const maxModelIdLength = 200;

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

/** An intent that was not confirmed within this is never dispatched (docs/money.md). */
export const confirmWithinMs = 5_000;
/** When billing asks about a hold that is still open, counted from its opening (docs/money.md). */
export const holdCheckMs = 60_000;
/** Time between two checkpoints of a request (docs/money.md): what a lost process costs us at most. */
export const beatMs = 2_000;
/** How often running requests are looked through for one that is due; a beat or a budget is late by at most this. */
export const beatTickMs = 100;
/** Output between two checkpoints, in characters: about 256 tokens of English (docs/money.md). */
export const checkpointCharacters = 1_024;
/** Without a checkpoint for this long a request's process counts as dead (docs/money.md). */
export const leaseMs = 30_000;
/** A process that could not write a checkpoint gives up this long before others may take the request over. */
export const leaseMarginMs = 5_000;

/**
 * How long upstream is read on for its usage when the caller has left after the last of the output (the contract's), in ms:
 * models report it some hundred ms later.
 */
export const usageWaitMs = 2_000;

/**
 * Tokens that a model is taken to generate in a second of which nothing is seen, where its caller leaves before it reports
 * usage: what fast reasoning models make, so that leaving early costs no less than staying, and several seconds of them
 * are still a fraction of any model's bound.
 */
export const unseenTokensPerSecond = 200;

/** What closing and settling may add to a request before its last event goes out (docs/money.md). */
export const settleBudgetMs = 500;
/** Pause between two attempts at closing a request whose store is away; the lease bounds how many there are. */
export const closeRetryMs = 1_000;
/** When a request that was closed but not settled is taken up by any replica. */
export const settleRetryMs = 5_000;
/**
 * How long a settled request waits for others to be finished with in one command of MongoDB, in ms. Nobody waits for it; a
 * process that is killed meanwhile leaves so many more to the sweeper, which finds them settled.
 */
export const finishLingerMs = 100;
/** Pause after a failed attempt of the sweeper at the same request. */
export const sweepRetryMs = 10_000;
/** How often due requests are looked for, by index. */
export const sweepIntervalMs = 1_000;
/** Due requests taken up in one round: a backlog after an outage does not hold up what runs. */
export const sweepBatch = 100;
/** How often answers and makers whose time is over are looked for, in ms: whoever reads one sees its time, too. */
export const forgetIntervalMs = 10_000;
/** Answers and makers of opaque state deleted in one round: faster than any one process makes them, in some ms. */
export const forgetBatch = 1_000;
/** How long billing is told to keep the hold of a request that runs or waits for a replica. */
export const keepHoldMs = 60_000;
/** How long what an upstream reported beyond belief is shown to the operator, in ms: a month of accounts. */
export const reviewKeptMs = 31 * 24 * 3_600_000;
/**
 * Of a request that an older release put in review with its hold: how long billing is told to keep the hold, and how often it is
 * looked at.
 */
export const keepReviewMs = 10 * 60_000;
/** Requests in one answer of ListReviews (the contract's). */
export const maxReviews = 1_000;

/** How long a complete answer is kept for its idempotency key (the contract's). */
export const answerKeptMs = 24 * 3_600_000;
/** Bytes of an answer that is kept: a stored document has 16 MiB in the least of our stores, with room for the rest. */
export const maxKeptAnswerBytes = 8 * 1024 * 1024;
/** Bytes of a running stream kept for duplicates that join it late: about 100,000 deltas of one token. */
export const maxReplayBytes = 24 * 1024 * 1024;
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
 * Requests of one account whose input is counted at once before there is any money for it: two, so that a long prompt keeps no
 * shorter one of the same account waiting.
 */
export const contextCountsEach = 2;
/** Requests of one account that wait for that: what an account with many agents sends in a moment. */
export const contextCountsWaiting = 64;
/** How long they wait, in ms: the longest input that fits a window takes half a second. */
export const contextCountWaitMs = 30_000;
/**
 * Characters of a token, at most, over a whole input: prose has four to five, source code three, tables of dashes up to ten. What
 * does not fit even so is refused without counting it.
 */
export const mostCharactersPerToken = 16;
/** Counts under way at once, two for a request at most: more than a process has requests. Each has a batch waiting. */
export const maxCounts = 10_000;
/** For one batch, loading included, in ms: a hundred times what it takes, so that a busy machine ends no sound thread. */
export const tokenAnswerTimeoutMs = 10_000;
/** Threads that a batch is tried on: what ends two of them would end a third. */
export const tokenBatchTries = 2;
/** Without work for this long the counting thread ends, and some 35 MiB are free: loading it anew takes 0.3 s of another core. */
export const tokenThreadIdleMs = 60_000;
/** JavaScript heap of the counting thread in MiB: the vocabulary takes 35, what it remembers of words up to 100. */
export const tokenThreadHeapMib = 256;
/** What a checkpoint or an answer's end waits for its counts, in ms: both must be written well within the lease. */
export const countPatienceMs = 10_000;
/** What a stopping process waits for counts that are still under way, in ms: a prompt of 10 MiB. */
export const stopCountsMs = 2_000;
