import { parentPort } from "node:worker_threads";
import { muteThread } from "#kit/threads/thread.ts";
import { type Task, tasks } from "./tasks.ts";

/** The entry of a thread for large answers. What goes wrong ends the thread. */

/** What it is asked. */
export interface LargeJob {
  task: Task;
  given: unknown[];
}

/** A shorter piece is copied: it may share its buffer with others. */
const transferredBytes = 64 * 1024;

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a thread for large answers");
muteThread();
port.on("message", ({ task, given }: LargeJob) => {
  const work = tasks[task] as (...given: unknown[]) => unknown;
  const result = work(...given);
  port.postMessage(result, [...new Set(buffersIn(result))]);
});

/** The buffers of all bytes in a result, so that they go back without a copy. */
function buffersIn(value: unknown): ArrayBuffer[] {
  if (value instanceof Uint8Array) {
    const { buffer, byteLength } = value;
    const isOwn = byteLength >= transferredBytes && buffer.byteLength === byteLength;
    return isOwn && buffer instanceof ArrayBuffer ? [buffer] : [];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(buffersIn);
}
