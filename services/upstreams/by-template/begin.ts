// Puts a task into the queue of an upstream that takes no idempotency key. The drivers of ComfyUI, fal and Replicate share it.

import type { JsonValue } from "#kit/base/json.ts";
import { begin, checkedTaskId } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { type Call, exchangeJson, type JsonReply } from "../media/exchange.ts";
import { failed, StatusError, unknown } from "../media/faults.ts";
import { generateLimits, generateTimes } from "../media/limits.ts";
import type { GenerationTask } from "../media/port.ts";

/**
 * Sends the request that puts a task into an upstream's queue, once. The upstream takes no idempotency key. So a request whose answer
 * is lost may have been taken, and is not sent again.
 */
export function enqueue(
  context: DriverContext,
  task: GenerationTask,
  call: Omit<Call, "upstream" | "method" | "once" | "signal" | "timeoutMs">,
): Promise<JsonReply> {
  const { upstream, signal } = task;
  const timeoutMs = generateTimes.submitMs;
  const request = { ...call, upstream, method: "POST", once: true, timeoutMs, signal } as const;
  return begin(task, { takesKey: false }, async () => {
    try {
      return await exchangeJson(context, request, generateLimits.answerBytes);
    } catch (error) {
      // The upstream may have failed behind its queue.
      const isOpen = error instanceof StatusError && error.status === 500;
      throw isOpen ? unknown(error.message, { cause: error }) : error;
    }
  });
}

/**
 * The id that a queue gave a task. It is part of the path of later requests about the task. Throws a `failed` GenerationError for an id
 * that cannot be.
 */
export function queueId(value: JsonValue | undefined): string {
  const id = checkedTaskId(value);
  if (!/^[\w-]+$/.test(id)) throw failed("the upstream's answer names no task");
  return id;
}
