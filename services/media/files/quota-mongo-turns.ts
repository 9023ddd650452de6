interface Waiting<I, O> {
  input: I;
  resolve: (output: O) => void;
  reject: (error: unknown) => void;
}

/**
 * Lets calls for the same key that come while one is under way travel in the next one, up to `most` together. `run` answers
 * an output for each input, or rejects for all of them.
 */
export function createTurns<I, O>(
  most: number,
  run: (key: string, inputs: readonly I[]) => Promise<readonly O[]>,
): (key: string, input: I) => Promise<O> {
  const queues = new Map<string, Waiting<I, O>[]>();
  const empty = async (key: string, queue: Waiting<I, O>[]) => {
    while (queue.length > 0) {
      const turn = queue.splice(0, most);
      try {
        const outputs = await run(
          key,
          turn.map(({ input }) => input),
        );
        for (const [i, { resolve }] of turn.entries()) resolve(outputs[i] as O);
      } catch (error) {
        for (const { reject } of turn) reject(error);
      }
    }
    queues.delete(key);
  };
  return (key, input) =>
    new Promise((resolve, reject) => {
      const known = queues.get(key);
      const queue = known ?? [];
      queue.push({ input, resolve, reject });
      if (known) return;
      queues.set(key, queue);
      void empty(key, queue);
    });
}
