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
  /**
   * Milliseconds for which the first input waits for others, unless {@link most} have come. Default: 0, it waits for those
   * of the same moment alone.
   */
  lingerMs?: number;
}

/**
 * Lets calls that come while others are under way travel in the next run, together; a call that finds a lane free leaves
 * at once, with all that come in the same moment, or after it has lingered. `run` gets their inputs, at least one, and
 * answers an output for each, or rejects for all of them.
 */
export function together<I, O>(
  run: (inputs: readonly I[]) => Promise<readonly O[]>,
  { lanes = 1, most = Number.POSITIVE_INFINITY, lingerMs = 0 }: TogetherOptions = {},
): (input: I) => Promise<O> {
  let waiting: Waiting<I, O>[] = [];
  let running = 0;
  let lingering: NodeJS.Timeout | undefined;
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
  const begin = () => {
    clearTimeout(lingering);
    lingering = undefined;
    if (running >= lanes || waiting.length === 0) return;
    running++;
    queueMicrotask(empty);
  };
  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (lingerMs > 0 && waiting.length < most) lingering ??= setTimeout(begin, lingerMs);
      else begin();
    });
}
