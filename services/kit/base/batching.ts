// Has calls that come at the same time share one run: of a write, of a look at a store, or of a message to a peer.

interface Waiting<I, O> {
  input: I;
  resolve: (output: O) => void;
  reject: (error: unknown) => void;
}

/** How many inputs one run takes, and how many runs go on at once. */
interface BatchOptions {
  /** Runs under way at the same time. Default: 1, so that none overlaps another. */
  lanes?: number;
  /** Inputs of one run. Default: all that wait. */
  most?: number;
  /**
   * Milliseconds for which the first input waits for others, unless {@link most} have come. Default: 0, so it waits only for
   * inputs of the same moment.
   */
  waitMs?: number;
}

/**
 * Combines many calls into one. Calls that come while all lanes are busy wait, and share the next run. A call that finds a lane
 * free starts a run with all calls that come in the same moment, or within `waitMs`. `run` gets their inputs, at least one. It
 * answers an output for each, or rejects for all of them.
 */
export function batched<I, O>(
  run: (inputs: readonly I[]) => Promise<readonly O[]>,
  { lanes = 1, most = Number.POSITIVE_INFINITY, waitMs = 0 }: BatchOptions = {},
): (input: I) => Promise<O> {
  let waiting: Waiting<I, O>[] = [];
  let running = 0;
  let timer: NodeJS.Timeout | undefined;
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
    clearTimeout(timer);
    timer = undefined;
    if (running >= lanes || waiting.length === 0) return;
    running++;
    queueMicrotask(empty);
  };
  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (waitMs > 0 && waiting.length < most) timer ??= setTimeout(begin, waitMs);
      else begin();
    });
}

/** Runs of {@link batched}, each under a name. Runs of different names do not wait for each other. */
export interface BatchesByName<I, O> {
  /** Combines this call with others of the same name. */
  add(name: string, input: I): Promise<O>;
  /** Is a call of the name under way? */
  has(name: string): boolean;
  /** Names of which a call is under way. */
  readonly size: number;
}

/** Makes batches by name, empty at first. */
export function batchedByName<I, O>(
  run: (name: string, inputs: readonly I[]) => Promise<readonly O[]>,
  options?: BatchOptions,
): BatchesByName<I, O> {
  const known = new Map<string, { add: (input: I) => Promise<O>; calls: number }>();
  return {
    async add(name, input) {
      const one = known.get(name) ?? {
        add: batched<I, O>((inputs) => run(name, inputs), options),
        calls: 0,
      };
      known.set(name, one);
      one.calls++;
      try {
        return await one.add(input);
      } finally {
        if (--one.calls === 0) known.delete(name);
      }
    },
    has: (name) => known.has(name),
    get size() {
      return known.size;
    },
  };
}

/**
 * Shares reads of values that can change at any time, each under a name. A caller never joins a read that has begun, so its
 * answer is no older than its question. Callers that ask during a read share the next one, which begins when the first is over.
 */
export type SharedLooks<T> = BatchesByName<() => Promise<T>, T>;

/** Makes shared looks, none under way yet. */
export function createSharedLooks<T>(): SharedLooks<T> {
  return batchedByName(async (_, looks) => {
    const found = await looks[0]?.();
    return looks.map(() => found as T);
  });
}

/** Decides whether an input waits a turn of the event loop for others that could join its batch. */
interface BatchWait {
  /** Is it worth waiting a turn now? */
  isWorthwhile(): boolean;
  /** Reports that a batch of `count` inputs went, whether or not it waited. */
  ended(count: number): void;
}

/** After this many batches of one input in a row, inputs wait no longer. */
const aloneAfter = 4;
/** Of this many inputs that need not wait, one still waits, to see whether others come again. */
const lookEvery = 8;

/**
 * Makes a {@link BatchWait} that waits at first. Under load hardly any input is alone, and a shared batch saves each input a good
 * part of its cost. A lone caller would lose a turn at each of its steps.
 */
export function createBatchWait(): BatchWait {
  let alone = 0;
  let sinceLook = 0;
  return {
    isWorthwhile() {
      if (alone < aloneAfter) return true;
      sinceLook = (sinceLook + 1) % lookEvery;
      return sinceLook === 0;
    },
    ended(count) {
      alone = count > 1 ? 0 : alone + 1;
    },
  };
}
