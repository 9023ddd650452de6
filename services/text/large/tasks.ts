import { liftParts } from "../../upstreams/text/large-parts.ts";
import { readPlain } from "../../upstreams/text/plain.ts";
import { eventsOfAnswer, responseIn } from "../answers/replay.ts";
import { bodyWithUsage, lastFramesWithUsage } from "../metering/shown-usage.ts";

/** What is done with whole answers: each takes as long as its answer is large, and needs nothing but its arguments. */
export const tasks = {
  lift: liftParts,
  plain: readPlain,
  /** A kept answer as a stream. */
  events: eventsOfAnswer,
  /** A JSON answer with what it cost, and the usage that we counted. */
  withUsage: bodyWithUsage,
  /** The last frames of a stream with them. */
  lastFrames: lastFramesWithUsage,
  /** The response object in the last frame of a stream. */
  response: responseIn,
};

/** Names of {@link tasks}. */
export type Task = keyof typeof tasks;
/** What a task is given. */
export type TaskArguments<T extends Task> = Parameters<(typeof tasks)[T]>;
/** What it gives. */
export type TaskResult<T extends Task> = ReturnType<(typeof tasks)[T]>;

/** What a thread is asked. */
export interface LargeJob {
  task: Task;
  given: unknown[];
}

/** Does a task in a thread. */
export function inThread({ task, given }: LargeJob): unknown {
  const work = tasks[task] as (...given: unknown[]) => unknown;
  return work(...given);
}

/** A shorter piece is copied: it may share its buffer with others. */
const transferredBytes = 64 * 1024;

/** The buffers of all bytes in a result, so that they go back without a copy. */
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
