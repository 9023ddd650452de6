// The bounds of reading upstreams' answers: when an answer is cut, how it is read on, and how large its parts may be.

/**
 * How far the output of an upstream that counts for itself may go past its bound, by the count of genmesh, before it is cut. Seven
 * tokenizers of other models were measured against genmesh's. For 1 token of the other one genmesh counts at most 1.22 in English,
 * other words of ASCII letters, code, JSON or base64. It counts at most 1.56 in scripts that all vocabularies have, and 2.41 in rare
 * ones, emoji and repetitions. In a text of a few tokens they differ by up to 6 more (docs/decisions/text.md has the figures). So an
 * upstream that keeps to its own count is not cut. The upstream's operator pays for output beyond the bound.
 */
export const cutMargin = { factors: { close: 1.25, script: 2, loose: 2.5 }, tokens: 16 } as const;
/**
 * Tokens above the bound at which an answer is cut, or withheld until its upstream reports its usage. This many pass between two
 * counts, and servers count the end of an answer as one or two.
 */
export const boundSlack = 16;
/**
 * Bytes of withheld events of one answer: 8,000 deltas of 250 bytes. German text within a bound of 32,000 tokens may exceed it by that
 * many. An answer with more is cut at its bound.
 */
export const maxWithheldBytes = 2 * 1024 * 1024;
/**
 * How many more tokens than genmesh's another tokenizer makes of a text, by its kind. Each factor is nine tenths of the most that was
 * measured (docs/decisions/text.md), and a little for the spaces between words. The factor of words of ASCII letters is that of German,
 * of words with accents that of Vietnamese, of the rest that of "haha".
 */
export const elsewhereFactors = { close: 1.15, script: 1.75, loose: 1.9 } as const;
/**
 * The same factors for scripts and letters for which genmesh's vocabulary has more tokens than others. `urdu`, `kazakh`: letters that
 * only these languages have.
 */
export const scriptFactors = {
  ...{ arabic: 2.5, armenian: 6.9, burmese: 3.8, cyrillic: 2.1, devanagari: 3.8, georgian: 7.3 },
  ...{
    greek: 2.5,
    hebrew: 2.9,
    indic: 5.6,
    kazakh: 8,
    khmer: 2.9,
    korean: 2.8,
    thai: 3.8,
    urdu: 12,
  },
} as const;
/** Characters of a text that are searched for its composition. That takes some milliseconds on a busy machine. */
export const maxComposedCharacters = 16 * 1024;
/** Bytes of output that wait until they are counted, for a bound at any distance. */
export const maxUncountedBytes = 64 * 1024;
/**
 * Characters that are counted again with the text behind them: some thousand tokens, which take a millisecond of the counting thread.
 */
export const maxRecentCharacters = 4 * 1024;
/** An event with more bytes is looked at before it is read where it could pass the cut. A delta has some hundred bytes. */
export const largeEventBytes = 1_024;

/**
 * Times for reading an answer on, after a reader that held it back has left. `quietMs`: reading ends after this time without a byte.
 * Bytes on their way between two kernels take less. An upstream that is at work or silent is closed within the contract's quarter of a
 * second. `ms`: reading ends after this time in all, where bytes always follow. A busy machine takes that long for the megabytes that
 * kernels hold. Bytes that come as fast as those of an upstream's own queue are read on: see {@link queued}.
 */
export const arrived = { ms: 1_000, quietMs: 150 } as const;
/**
 * The same after a reader that kept up. Bytes that an upstream made at once are on their way then. An upstream that goes on is closed
 * well within the contract's quarter of a second.
 */
export const justArrived = { ms: 100, quietMs: 15 } as const;
/**
 * An upstream that does not wait for its reader queues its output. A queue is read on for up to `ms` in all, while each `lookMs` brings
 * `leastBytes`. A queue comes as fast as genmesh parses it. That was measured at 90 MB a second on two cores that have other work, and
 * at a fifth of that with ten processes on them. A model at work writes less and is closed, even at 1,000 tokens a second with the log
 * probabilities of twenty alternatives each. In 30 s such a busy machine has read {@link maxArrivedBytes}.
 */
export const queued = { ms: 30_000, lookMs: 1_000, leastBytes: 2 * 1024 * 1024 } as const;
/**
 * The most bytes that are read in this way. The longest outputs have 128,000 tokens, and a token with the log probabilities of twenty
 * alternatives takes 2 KB. The bytes are parsed as for a reader, and none are kept.
 */
export const maxArrivedBytes = 256 * 1024 * 1024;
/**
 * After this many of these bytes, other work has its turn: about a millisecond. A socket that is not paused is read up to 32 times in a
 * turn.
 */
export const arrivedBytesATurn = 64 * 1024;

/**
 * How long an upstream is read on for its usage behind a stop sequence that only genmesh looks for, in ms. The text behind a sequence
 * is usually short, and the caller waits for the end of the answer meanwhile.
 */
export const stopUsageWaitMs = 5_000;

/**
 * From this many bytes on, large parts of a JSON answer or of one event are taken out in a thread before it is read. Reading and
 * writing a shorter one takes some ms, and a thread takes one.
 */
export const largeAnswerBytes = 256 * 1024;
/**
 * Bytes of a whole answer that are read before the answer has room in memory. An answer of usual length asks for no room. As many as
 * the requests of an account in a minute fit into half a GiB.
 */
export const roomlessBytes = 64 * 1024;
/**
 * The usual maximum for the embedding of one input, in bytes, where an answer does not report its length. It is enough for 4,096
 * numbers of 20 characters and the indented separators between them.
 */
export const embeddingBytes = 128 * 1024;
/** The fewest bytes of a part that is taken out. A shorter part is not worth a mark. */
export const leastLiftedBytes = 16 * 1024;
/**
 * The most bytes of the rest of an answer. No model writes this much. The longest outputs have 128,000 tokens, half a MiB. A compaction
 * keeps the caller's messages, of which a body has 8 MiB, and their sealed state. Text of this size is parsed in some 30 ms.
 */
export const maxRestBytes = 16 * 1024 * 1024;
/** The most values and names of the rest. The 16,384 items of a compaction have some 20 each. This many are parsed in some 30 ms. */
export const maxRestMarks = 500_000;
/**
 * Tokens whose log probabilities are taken out together where the answer may be cut at a stop sequence. If it is, fewer tokens than
 * this before the cut are shown without their log probabilities.
 */
export const tokensLiftedAtOnce = 8;

/** Bounds on the parts of an answer that the upstream side of text keeps. */
export const textLimits = {
  /**
   * Characters of one streamed text that are remembered, to repair its end where the upstream leaves something out. That is ten times
   * the longest output of a model. A longer text still passes, but is not repaired.
   */
  keptChars: 4 * 1024 * 1024,
  /**
   * Items of one answer, and the parts within them. The longest answers with searches and calls have some hundred. Each piece that
   * comes whole in one event becomes up to six events, about 10 µs each, which are sent in one turn.
   */
  pieces: 1_024,
  /**
   * Items of a compaction, which keeps the caller's own messages and is passed on unchanged. The longest conversations have this many.
   */
  compactedItems: 16_384,
} as const;
