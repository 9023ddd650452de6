// Finds a task at a ComfyUI server, in its queue or its history, and cancels it there. It knows the ways of older servers, too.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { DriverContext } from "../media/context.ts";
import { exchange, exchangeJson, jsonBody, urlOf } from "../media/exchange.ts";
import { isWorthRepeating, StatusError } from "../media/faults.ts";
import { generateLimits, generateTimes } from "../media/limits.ts";
import { type Ask, look } from "../media/poll.ts";
import { type CancelTask, GenerationError, type GenerationTask } from "../media/port.ts";
import { comfyLimits } from "./limits.ts";

/** A task's state at the server. */
export type TaskState =
  | { at: "queue" | "work"; id: string }
  /** Its entry in the history. */
  | { at: "end"; entry: JsonObject }
  /** The server does not know the task: it never came there, or the server has been restarted since. */
  | { at: "nowhere" };

/** The upstream to ask, and the signal that ends the question. */
type Asker = Pick<GenerationTask | CancelTask, "upstream" | "signal">;

/** Asks a server for one task, in the way that the server knows. */
export interface TaskAsker {
  /** The state of the task of that id. */
  state(id: string): Promise<TaskState>;
}

/**
 * Servers since the end of 2025 answer for one task at `/api/jobs/{id}`. Other servers send the whole queue. A task that has left the
 * queue is in the history, which is searched last. So a task that ends between two questions does not count as lost.
 */
export function createTaskAsker(context: DriverContext, asker: Asker): TaskAsker {
  let hasJobs = true;
  return {
    async state(id) {
      const job = hasJobs
        ? await find(context, asker, `/api/jobs/${encodeURIComponent(id)}`)
        : undefined;
      if (job?.status === "pending") return { at: "queue", id };
      if (job?.status === "in_progress") return { at: "work", id };
      const queued = job ? undefined : await inQueue(context, asker, id);
      if (queued && queued !== "unreadable") {
        hasJobs = false;
        return queued;
      }
      const history = await find(context, asker, `/history/${encodeURIComponent(id)}`);
      const entry = history?.[id] ?? (await lastEndedOf(context, asker, id));
      if (isJsonObject(entry)) return { at: "end", entry };
      // The queue is too long to be read. Until it is shorter, the task counts as waiting in it.
      return queued === "unreadable" ? { at: "queue", id } : { at: "nowhere" };
    },
  };
}

/** A server of 2024 gives other ids, but keeps our client id. `unreadable`: the queue is too long to be read. */
async function inQueue(
  context: DriverContext,
  { upstream, signal }: Asker,
  id: string,
): Promise<TaskState | "unreadable" | undefined> {
  const url = urlOf(upstream, "/queue");
  const call = { upstream, method: "GET", url, timeoutMs: generateTimes.lookMs, signal } as const;
  const read = await look(context, call, { ask: asking(context, comfyLimits.queueBytes) }).catch(
    (error) => {
      if (!isTooLarge(error)) throw error;
    },
  );
  if (!read) return "unreadable";
  const { body } = read;
  const running = idOf(body.queue_running, id);
  if (running !== undefined) return { at: "work", id: running };
  const pending = idOf(body.queue_pending, id);
  return pending === undefined ? undefined : { at: "queue", id: pending };
}

function asking(context: DriverContext, maxBytes: number): Ask {
  return (call) => exchangeJson(context, call, maxBytes);
}

function isTooLarge(error: unknown): boolean {
  const cause = error instanceof GenerationError ? error.cause : undefined;
  return cause instanceof UpstreamError && cause.kind === "too_large";
}

/**
 * The entry in the history of a task whose answer was lost, at a server of 2024. It is under an id that only the server knows, among
 * the tasks that ended last. Where they are too large to be read, there is none.
 */
async function lastEndedOf(
  context: DriverContext,
  { upstream, signal }: Asker,
  id: string,
): Promise<JsonValue | undefined> {
  const url = urlOf(upstream, `/history?max_items=${comfyLimits.historyItems}`);
  const call = { upstream, method: "GET", url, timeoutMs: generateTimes.lookMs, signal } as const;
  const { body } = await look(context, call, {
    ask: asking(context, comfyLimits.queueBytes),
  }).catch((error) => {
    if (!isTooLarge(error)) throw error;
    return { body: {} };
  });
  return Object.values(body).find(
    (entry) => isJsonObject(entry) && idOf([entry.prompt ?? null], id) !== undefined,
  );
}

/** Items are `[number, id, graph, { client_id }, outputs]`. */
function idOf(items: JsonValue | undefined, id: string): string | undefined {
  for (const item of Array.isArray(items) ? items : []) {
    const [, known, , extra] = Array.isArray(item) ? item : [];
    if (typeof known !== "string") continue;
    if (known === id || (isJsonObject(extra) && extra.client_id === id)) return known;
  }
  return undefined;
}

/** Undefined: the server has no such path. */
async function find(
  context: DriverContext,
  { upstream, signal }: Asker,
  path: string,
): Promise<JsonObject | undefined> {
  const url = urlOf(upstream, path);
  const call = { upstream, method: "GET", url, timeoutMs: generateTimes.lookMs, signal } as const;
  try {
    const ask = asking(context, comfyLimits.taskBytes);
    return (await look(context, call, { ask, mayRepeat: isWorthRepeating })).body;
  } catch (error) {
    const cause = error instanceof GenerationError ? error.cause : undefined;
    if (cause instanceof StatusError && [404, 405].includes(cause.status)) return undefined;
    throw error;
  }
}

/**
 * Takes a task out of the queue, or stops it. It names the task in each interruption, and interrupts only where the task runs. A server
 * of 2024 ignores the name, and stops the running task, even another one.
 */
export async function cancelAtComfyUi(context: DriverContext, task: CancelTask): Promise<boolean> {
  const asker = createTaskAsker(context, task);
  const found = await asker.state(task.resumeId);
  if (found.at === "end" || found.at === "nowhere") return false;
  const { id } = found;
  // One entry of the id is deleted for each time that it is named. A task whose answer was lost may wait twice.
  await post(context, task, "/queue", { delete: [id, id] });
  const next = await asker.state(id);
  if (next.at === "work") await post(context, task, "/interrupt", { prompt_id: id });
  return next.at === "work" || next.at === "nowhere";
}

/** The answer has no meaning. */
async function post(
  context: DriverContext,
  { upstream, signal }: Asker,
  path: string,
  value: JsonObject,
): Promise<void> {
  const { headers = {}, body = "" } = jsonBody(value);
  const url = urlOf(upstream, path);
  const timeoutMs = generateTimes.lookMs;
  const call = { upstream, method: "POST", url, headers, body, timeoutMs, signal } as const;
  const reply = await exchange(context, call);
  await reply.body.whole(generateLimits.answerBytes);
}
