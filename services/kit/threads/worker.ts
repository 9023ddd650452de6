// The program of a workshop's thread. It does each job with the job's own module. An error that is thrown ends the thread, which
// the pool then replaces.

import { parentPort, type Transferable } from "node:worker_threads";
import { muteThread } from "./thread.ts";

/** A job for the thread. */
export interface WorkshopJob {
  /** Address of the module. */
  module: string;
  given: unknown;
}

/** The exports of such a module. */
interface TaskModule {
  inThread(given: unknown): unknown;
  /** Bytes of a result that are handed over without a copy. */
  buffersOf?(result: unknown): Transferable[];
}

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a thread");
muteThread();
port.on("message", async ({ module, given }: WorkshopJob) => {
  const { inThread, buffersOf }: TaskModule = await import(module);
  const result = await inThread(given);
  port.postMessage(result, buffersOf?.(result) ?? []);
});
