/**
 * How far, by our own count of tokens, the output of an upstream that counts for itself may go past its bound before it is
 * cut. Of seven tokenizers of other models none gives fewer than 1 token for 1.22 of ours in English, other words of ASCII
 * letters, code, JSON or base64, for 1.56 in scripts that all vocabularies have, and for 2.41 in rare ones, emoji and repetitions; in a text of a few
 * tokens they differ by up to 6 more (docs/decisions/text.md has the figures). So an upstream that keeps to its own count is not cut. What is
 * generated beyond the bound costs its upstream's operator.
 */
export const cutMargin = { factors: { close: 1.25, script: 2, loose: 2.5 }, tokens: 16 } as const;
/**
 * Tokens above the bound at which an answer is withheld until its upstream says what it used, or cut: so many pass between two counts, and servers count
 * the end of an answer as one or two.
 */
export const boundSlack = 16;
/**
 * Bytes of events that one answer has withheld: 8,000 deltas of 250 bytes, as many as a bound of 32,000 tokens of German may be exceeded by. What is
 * more is cut at its bound.
 */
export const maxWithheldBytes = 2 * 1024 * 1024;
/**
 * How many more tokens than ours another tokenizer makes of a text, by what it is written in: nine tenths of the most that was measured
 * (docs/decisions/text.md), and a little for the spaces between words. Words of ASCII letters: of German; with accents: of Vietnamese;
 * the rest: of "haha".
 */
export const elsewhereFactors = { close: 1.15, script: 1.75, loose: 1.9 } as const;
/** The same of scripts and letters that our vocabulary has more tokens for than others have; `urdu`, `kazakh`: letters of their own. */
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
/** Characters of a text that are looked at for what it is made of: some milliseconds on a busy machine. */
export const maxComposedCharacters = 16 * 1024;
/** Bytes of output that are held until they are counted, however far away the bound is. */
export const maxUncountedBytes = 64 * 1024;
/** Characters that are counted again with what follows them: some thousand tokens, a millisecond of the counting thread. */
export const maxRecentCharacters = 4 * 1024;
/** An event of more bytes is looked at before it is read where it could pass the cut: a delta has some hundred. */
export const largeEventBytes = 1_024;

/**
 * How long without a byte what has arrived is read behind a reader that held it back and left, in ms: what is under way between two
 * kernels takes less, and an upstream that is at work or silent is closed within the contract's quarter of a second. And how long in all, where
 * there is always more: a busy machine takes so long for the megabytes that kernels hold. What comes as an upstream's own queue does is read
 * on: see {@link queued}.
 */
export const arrived = { ms: 1_000, quietMs: 150 } as const;
/**
 * The same behind a reader that kept up: what an upstream made at once is on its way then, and one that goes on is closed well within the
 * contract's quarter of a second.
 */
export const justArrived = { ms: 100, quietMs: 15 } as const;
/**
 * An upstream that does not wait for its reader queues what it makes, and that is read on for up to `ms` in all, as long as each `lookMs` brings
 * `leastBytes`: a queue comes as fast as we parse it, measured at 90 MB a second on two cores that have other work, and at a fifth of that where
 * ten processes want them, while a model at work writes less, even at 1,000 tokens a second with the log probabilities of twenty others to each,
 * and is closed. In 30 s such a busy machine has read {@link maxArrivedBytes}.
 */
export const queued = { ms: 30_000, lookMs: 1_000, leastBytes: 2 * 1024 * 1024 } as const;
/**
 * Bytes that are read so: the longest outputs have 128,000 tokens, and one with the log probabilities of twenty others takes 2 KB. They are
 * parsed as they would be for a reader, and none are kept.
 */
export const maxArrivedBytes = 256 * 1024 * 1024;
/** Bytes of them after which others have their turn: about a millisecond. A socket that is not paused is read up to 32 times in a turn. */
export const arrivedBytesATurn = 64 * 1024;

/**
 * How long upstream is read on for its usage behind a stop sequence that only we look for, in ms: what a model says
 * behind one is short, as a rule, and the caller waits for the end of the answer meanwhile.
 */
export const stopUsageWaitMs = 5_000;

/**
 * Bytes of a JSON answer, or of one event, from which on its large parts are taken out in a thread before it is read: reading and
 * writing one that is shorter takes some ms, and a thread one.
 */
export const largeAnswerBytes = 256 * 1024;
/**
 * Bytes of a whole answer that are read before it has room in memory: an answer of usual length asks for none, and as many as an account may
 * have requests in a minute fit into half a GiB.
 */
export const roomlessBytes = 64 * 1024;
/**
 * Bytes that the embedding of one input has at most, as a rule, where an answer does not say its length: 4,096 numbers of 20 characters and what
 * stands between them, indented.
 */
export const embeddingBytes = 128 * 1024;
/** Bytes of a part that is taken out: what is shorter is not worth a mark. */
export const leastLiftedBytes = 16 * 1024;
/**
 * Bytes of what is left of an answer: no model writes as much. The longest outputs have 128,000 tokens, half a MiB; a compaction keeps
 * the caller's messages, of which a body has 8 MiB, and what is sealed of them. Text of this size is read in some 30 ms.
 */
export const maxRestBytes = 16 * 1024 * 1024;
/** Values and names of it: the 16,384 items of a compaction have some 20 each. So many are parsed in some 30 ms. */
export const maxRestMarks = 500_000;
/**
 * Tokens whose log probabilities are taken out together where the answer may be cut at a stop sequence: where it is, fewer than this many
 * before it are shown without theirs.
 */
export const tokensLiftedAtOnce = 8;

/** Bounds of what the upstream side of text keeps of an answer. */
export const textLimits = {
  /**
   * Characters of one streamed text that are remembered, to repair what upstream leaves out at its end. Ten times the
   * longest output that models give; what is longer passes all the same, but is repaired no more.
   */
  keptChars: 4 * 1024 * 1024,
  /**
   * Items of one answer, and the parts within them. The longest answers with searches and calls have some hundred; each
   * piece that comes whole in one event becomes up to six events, about 10 µs each, which go out in one turn.
   */
  pieces: 1_024,
  /** Items of a compaction, which keeps the caller's own messages and goes out as it came: of the longest conversations. */
  compactedItems: 16_384,
} as const;
