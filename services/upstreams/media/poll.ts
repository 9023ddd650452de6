// Looks at a task at its upstream until it is done. The drivers with a fixed form of answer share it.

import { signalOf } from "#kit/base/stop.ts";
import type { DriverContext } from "./context.ts";
import { type Call, exchangeJson, type JsonReply } from "./exchange.ts";
import { isUnknownTask, isWorthRepeating, toGenerationError } from "./faults.ts";
import { generateLimits, generateTimes, generateTries } from "./limits.ts";
import type { GenerationTask } from "./port.ts";
import { withTries } from "./retries.ts";

/** The result of a look at a task. */
export type Look<T> =
  | { state: "running"; percent: number | undefined }
  | { state: "done"; result: T };

/** Sends a request once, like {@link exchangeJson}. */
export type Ask = (call: Call) => Promise<JsonReply>;

/** Options for watching a task. */
export interface Watch<T> {
  /** URL of the task's state. */
  url: string;
  /** The answer that created the task, where that was just now. */
  first: JsonReply | undefined;
  /** Requests the state. Default: for an answer of ids, states and URLs. */
  ask?: Ask;
  /** Reads an answer. Throws a GenerationError where the task has failed. */
  read: (reply: JsonReply) => Look<T>;
}

/**
 * Looks at a task until it is done, at first every second, later every five, or as `Retry-After` asks. Single looks that fail are
 * repeated. Rejects with a GenerationError (`failed` where the task is lost at the upstream), or the signal's reason.
 */
export async function watchTask<T>(
  context: DriverContext,
  task: GenerationTask,
  { url, first, ask, read }: Watch<T>,
): Promise<T> {
  const { signal, upstream } = task;
  const call: Call = { upstream, method: "GET", url, timeoutMs: generateTimes.lookMs, signal };
  let pauseMs: number = generateTimes.firstPauseMs;
  const how = ask ? { ask } : {};
  let reply = first ?? (await look(context, call, how));
  for (;;) {
    signal.throwIfAborted();
    const found = read(reply);
    if (found.state === "done") return found.result;
    if (found.percent !== undefined) task.progress(asProgress(found.percent));
    await context.clock.sleep(pauseOf(reply, pauseMs), signal);
    pauseMs = Math.min(pauseMs * 1.5, generateTimes.longestPauseMs);
    reply = await look(context, call, how);
  }
}

/**
 * Looks once, or a few times where that fails. By default it repeats even where the upstream does not know the task, which it may have
 * named a moment ago. Rejects with a GenerationError, or the signal's reason.
 */
export async function look(
  context: DriverContext,
  call: Call,
  {
    ask = (call) => exchangeJson(context, call, generateLimits.answerBytes),
    mayRepeat = (error) => isWorthRepeating(error) || isUnknownTask(error),
  }: { ask?: Ask; mayRepeat?: (error: unknown) => boolean } = {},
): Promise<JsonReply> {
  const { signal } = call;
  const tries = { most: generateTries.look, mayRepeat, signal: signalOf(signal) };
  try {
    return await withTries(context, tries, () => ask(call));
  } catch (error) {
    signal.throwIfAborted();
    throw toGenerationError(error, true);
  }
}

/** The pause before the next look: the usual one, or within bounds what the upstream asks for. */
export function pauseOf(
  { retryAfterMs }: Pick<JsonReply, "retryAfterMs">,
  usualMs: number,
): number {
  if (retryAfterMs === undefined) return usualMs;
  const { firstPauseMs, longestRetryAfterMs } = generateTimes;
  return Math.min(Math.max(retryAfterMs, firstPauseMs), longestRetryAfterMs);
}

/** Progress is shown from 0 to 99, because finished output at the upstream is not yet in our store. */
export function asProgress(percent: number): number {
  return Math.max(0, Math.min(99, Math.floor(percent)));
}
