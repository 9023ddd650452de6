interface Waiting<I, O> {
  input: I;
  resolve: (output: O) => void;
  reject: (error: unknown) => void;
}

/**
 * Lets calls that come while one is under way travel in the next one, together. `run` gets their inputs and answers an
 * output for each, or rejects for all of them.
 */
export function together<I, O>(
  run: (inputs: readonly I[]) => Promise<readonly O[]>,
): (input: I) => Promise<O> {
  let waiting: Waiting<I, O>[] = [];
  let isRunning = false;
  const empty = async () => {
    isRunning = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const outputs = await run(batch.map(({ input }) => input));
        for (const [i, { resolve }] of batch.entries()) resolve(outputs[i] as O);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    isRunning = false;
  };
  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (!isRunning) void empty();
    });
}
