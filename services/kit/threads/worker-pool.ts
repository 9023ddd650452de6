// Starts threads, hands each one job at a time, and replaces those that end or are late. `workshop.ts` and the built-in models
// have pools.

import type { Transferable, Worker } from "node:worker_threads";

/** Threads that answer each message with one message. A job that comes while all threads are at work waits in order. */
export interface WorkerPool<Job, Answer> extends AsyncDisposable {
  /**
   * The answer to a job. Each item of `transfer` moves to the thread and is empty here afterwards. A thread that ends, or does
   * not answer in time, is replaced, and the job is tried again. Rejects where the last try fails, and after disposal.
   */
  run(job: Job, how: JobOptions, transfer?: readonly Transferable[]): Promise<Answer>;
}

/** How one job is worked on. */
export interface JobOptions {
  /** Name of the job in errors: "counting". */
  name: string;
  /** The thread's start included, in ms. */
  answerTimeoutMs: number;
  /** How often the job is tried. A job with a transfer list has one try, for its bytes are gone. */
  tries: number;
  /** Makes the error of a job that was not answered; `why` says nothing of its content. */
  toError: (why: string) => Error;
}

/** Settings of a {@link WorkerPool}. */
export interface WorkerPoolOptions {
  start: () => Worker;
  /** The most threads. Each starts when it is first needed. */
  threads: number;
  /** A thread without work for this many ms ends. */
  idleMs: number;
}

interface Waiting<Job, Answer> extends PromiseWithResolvers<Answer> {
  readonly job: Job;
  readonly how: JobOptions;
  readonly transfer: readonly Transferable[];
}

interface Place<Answer> {
  thread: Thread<Answer> | undefined;
  isBusy: boolean;
  idle: NodeJS.Timeout | undefined;
}

/** Makes a pool without a thread yet. */
export function createWorkerPool<Job, Answer>({
  start,
  threads,
  idleMs,
}: WorkerPoolOptions): WorkerPool<Job, Answer> {
  const waiting: Waiting<Job, Answer>[] = [];
  const places = Array.from(
    { length: threads },
    (): Place<Answer> => ({ thread: undefined, isBusy: false, idle: undefined }),
  );
  let isClosed = false;
  const closed = ({ name, toError }: JobOptions) => toError(`the ${name} thread is closed`);

  const attempt = async (place: Place<Answer>, one: Waiting<Job, Answer>): Promise<Answer> => {
    const { job, how, transfer } = one;
    const most = transfer.length > 0 ? 1 : how.tries;
    for (let tried = 1; ; tried++) {
      try {
        if (isClosed) throw closed(how);
        if (!place.thread?.isUsable()) place.thread = startThread<Answer>(start, how);
        return await place.thread.answer(job, how, transfer);
      } catch (error) {
        void place.thread?.end();
        if (isClosed || tried >= most) throw error;
      }
    }
  };
  const work = async (place: Place<Answer>) => {
    place.isBusy = true;
    clearTimeout(place.idle);
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await attempt(place, next).then(next.resolve, next.reject);
    }
    place.isBusy = false;
    place.idle = setTimeout(() => void place.thread?.end(), idleMs).unref();
  };
  return {
    async run(job, how, transfer = []) {
      if (isClosed) throw closed(how);
      const entry = { ...Promise.withResolvers<Answer>(), job, how, transfer };
      waiting.push(entry);
      const free = places.filter(({ isBusy }) => !isBusy);
      // A living thread comes first, so that jobs that come one by one need only one.
      const place = free.find(({ thread }) => thread?.isUsable()) ?? free[0];
      if (place) void work(place);
      return await entry.promise;
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      for (const entry of waiting.splice(0)) entry.reject(closed(entry.how));
      for (const { idle } of places) clearTimeout(idle);
      await Promise.all(places.map(({ thread }) => thread?.end()));
    },
  };
}

/** A thread that does one job at a time, and keeps the process alive only while it does. */
interface Thread<Answer> {
  /** False once the thread has ended or was given up. */
  isUsable(): boolean;
  /** Rejects where the thread ends, or does not answer in time. The thread is not usable then. */
  answer(job: unknown, how: JobOptions, transfer: readonly Transferable[]): Promise<Answer>;
  /** Ends it, in the middle of a job too, and resolves when it is gone. */
  end(): Promise<void>;
}

function startThread<Answer>(start: () => Worker, first: JobOptions): Thread<Answer> {
  const worker = startOr(start, first);
  let current: { how: JobOptions; answer: PromiseWithResolvers<Answer> } | undefined;
  let isUsable = true;
  let code = "";
  worker.unref();
  const fail = (why: string) => {
    isUsable = false;
    current?.answer.reject(current.how.toError(`the ${current.how.name} thread ${why}`));
  };
  worker.on("error", (error) => {
    code = codeOf(error);
  });
  worker.once("exit", () => fail(`ended${code}`));
  worker.on("message", (answer: Answer) => current?.answer.resolve(answer));
  return {
    isUsable: () => isUsable,
    async answer(job, how, transfer) {
      // A timer of the machine, since it bounds the work of a core.
      const limit = setTimeout(fail, how.answerTimeoutMs, "does not answer");
      current = { how, answer: Promise.withResolvers() };
      worker.ref();
      try {
        worker.postMessage(job, transfer);
        return await current.answer.promise;
      } finally {
        clearTimeout(limit);
        worker.unref();
        current = undefined;
      }
    },
    async end() {
      isUsable = false;
      await worker.terminate();
    },
  };
}

function startOr(start: () => Worker, { name, toError }: JobOptions): Worker {
  try {
    return start();
  } catch (error) {
    throw toError(`no ${name} thread could be started${codeOf(error)}`);
  }
}

/** The code of an error, for a message. The error's own text could hold some of the job's content. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? ` (${code})` : "";
}
