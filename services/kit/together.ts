interface Waiting<I, O> {
  input: I;
  resolve: (output: O) => void;
  reject: (error: unknown) => void;
}

/** How much goes at once. */
export interface TogetherOptions {
  /** Runs under way at the same time. Default: 1, so that none overlaps another. */
  lanes?: number;
  /** Inputs of one run. Default: all that wait. */
  most?: number;
}

/**
 * Lets calls that come while others are under way travel in the next run, together; a call that finds a lane free leaves
 * at once, with all that come in the same moment. `run` gets their inputs, at least one, and answers an output for each,
 * or rejects for all of them.
 */
export function together<I, O>(
  run: (inputs: readonly I[]) => Promise<readonly O[]>,
  { lanes = 1, most = Number.POSITIVE_INFINITY }: TogetherOptions = {},
): (input: I) => Promise<O> {
  let waiting: Waiting<I, O>[] = [];
  let running = 0;
  const empty = async () => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, most);
      waiting = waiting.slice(batch.length);
      try {
        const outputs = await run(batch.map(({ input }) => input));
        for (const [i, { resolve }] of batch.entries()) resolve(outputs[i] as O);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    running--;
  };
  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (running >= lanes) return;
      running++;
      queueMicrotask(empty);
    });
}
