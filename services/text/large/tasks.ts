// The work on whole answers that a thread can do. `index.ts` decides whether a thread is needed.

import { liftParts } from "../../upstreams/text/large-parts.ts";
import { readPlain } from "../../upstreams/text/plain.ts";
import { eventsOfAnswer, responseIn } from "../answers/replay.ts";
import { bodyWithUsage, lastFramesWithUsage } from "../metering/shown-usage.ts";

/** The tasks on whole answers. The time of each grows with its answer, and it needs only its arguments. */
export const tasks = {
  lift: liftParts,
  plain: readPlain,
  /** A kept answer as a stream. */
  events: eventsOfAnswer,
  /** A JSON answer with its cost, and the usage that genmesh counted. */
  withUsage: bodyWithUsage,
  /** The last frames of a stream with both. */
  lastFrames: lastFramesWithUsage,
  /** The response object in the last frame of a stream. */
  response: responseIn,
};

/** Names of {@link tasks}. */
export type Task = keyof typeof tasks;
/** The arguments of a task. */
export type TaskArguments<T extends Task> = Parameters<(typeof tasks)[T]>;
/** The result of a task. */
export type TaskResult<T extends Task> = ReturnType<(typeof tasks)[T]>;

/** The work for a thread. */
export interface LargeJob {
  task: Task;
  given: unknown[];
}

/** Does a task in a thread. */
export function inThread({ task, given }: LargeJob): unknown {
  const work = tasks[task] as (...given: unknown[]) => unknown;
  return work(...given);
}

/** A shorter piece is copied, because it may share its buffer with others. */
const transferredBytes = 64 * 1024;

/** The buffers of all bytes in a result, which go back without a copy. */
export function buffersOf(result: unknown): ArrayBuffer[] {
  return [...new Set(buffersIn(result))];
}

function buffersIn(value: unknown): ArrayBuffer[] {
  if (value instanceof Uint8Array) {
    const { buffer, byteLength } = value;
    const isOwn = byteLength >= transferredBytes && buffer.byteLength === byteLength;
    return isOwn && buffer instanceof ArrayBuffer ? [buffer] : [];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(buffersIn);
}
