import { Worker } from "node:worker_threads";
import { threadOptions } from "#kit/thread.ts";
import { tokenThreadHeapMib } from "../limits.ts";

/** Pieces of text whose tokens are added up, until they are more than `limit`. */
export interface Batch {
  pieces: readonly string[];
  limit: number;
}

/** Tokens could not be counted. Says nothing of the text. */
export class CountError extends Error {
  override readonly name = "CountError";
}

/** A thread that counts. */
export interface CountThread {
  /** False once it has ended or was given up. */
  isUsable(): boolean;
  /**
   * Tokens of a batch; one at a time. Rejects with {@link CountError} where the thread ends, or does not answer in
   * `timeoutMs`: it is of no more use then.
   */
  count(batch: Batch, timeoutMs: number): Promise<number>;
  /** Ends it, in the middle of a count too, and resolves when it is gone. */
  end(): Promise<void>;
}

/** Starts the thread itself. */
export function startWorker(): Worker {
  const options = threadOptions("tokens", tokenThreadHeapMib);
  return new Worker(new URL("./worker.ts", import.meta.url), options);
}

/** Starts a thread; it keeps the process alive only while it counts. Throws {@link CountError} where that cannot be. */
export function startCountThread(start: () => Worker): CountThread {
  const worker = startOr(start);
  let current: PromiseWithResolvers<number> | undefined;
  let isUsable = true;
  let code = "";
  worker.unref();
  const fail = (why: string) => {
    isUsable = false;
    current?.reject(new CountError(why));
  };
  worker.on("error", (error) => {
    code = codeOf(error);
  });
  worker.once("exit", () => fail(`the counting thread ended${code}`));
  worker.on("message", (tokens: number) => current?.resolve(tokens));
  return {
    isUsable: () => isUsable,
    async count(batch, timeoutMs) {
      // A timer of the machine: it bounds the work of a core.
      const limit = setTimeout(fail, timeoutMs, "the counting thread does not answer");
      current = Promise.withResolvers();
      worker.ref();
      try {
        worker.postMessage(batch);
        return await current.promise;
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

function startOr(start: () => Worker): Worker {
  try {
    return start();
  } catch (error) {
    throw new CountError(`no counting thread could be started${codeOf(error)}`);
  }
}

/** The code of an error, for a message: its own text could have some of what was counted. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? ` (${code})` : "";
}
