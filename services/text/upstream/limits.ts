/** Bounds of what the upstream side of text keeps of an answer. */
export const textLimits = {
  /**
   * Characters of one streamed text that are remembered, to repair what upstream leaves out at its end. Ten times the
   * longest output that models give; what is longer passes all the same, but is repaired no more.
   */
  keptChars: 4 * 1024 * 1024,
} as const;
