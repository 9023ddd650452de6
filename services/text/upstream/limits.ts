/**
 * How far, by our own count of tokens, the output of an upstream that counts for itself may go past its bound before it is
 * cut. Vocabularies made for one language give up to half as many tokens as ours for the same text, and in a short
 * answer a single token of theirs can be several of ours: nobody who keeps to his own count is cut. What is generated beyond
 * the bound costs its upstream's operator up to as much again, at most.
 */
export const cutMargin = { factor: 2, tokens: 16 } as const;
/** Bytes of output that are held until they are counted, however far away the bound is. */
export const maxUncountedBytes = 64 * 1024;
/** Characters that are counted again with what follows them: some thousand tokens, a millisecond of the counting thread. */
export const maxRecentCharacters = 4 * 1024;
/** An event of more bytes is looked at before it is read where it could pass the cut: a delta has some hundred. */
export const largeEventBytes = 1_024;

/**
 * How long upstream is read on for its usage behind a stop sequence that only we look for, in ms: what a model says
 * behind one is short, as a rule, and the caller waits for the end of the answer meanwhile.
 */
export const stopUsageWaitMs = 5_000;

/** Bounds of what the upstream side of text keeps of an answer. */
export const textLimits = {
  /**
   * Characters of one streamed text that are remembered, to repair what upstream leaves out at its end. Ten times the
   * longest output that models give; what is longer passes all the same, but is repaired no more.
   */
  keptChars: 4 * 1024 * 1024,
} as const;
