// The driver for images, video and music by fal: puts a task into its queue, watches it, and takes its result.

import type { JsonObject } from "#kit/base/json.ts";
import { enqueue, queueId } from "../by-template/begin.ts";
import { callOf, inputOf } from "../by-template/call.ts";
import { outputsOf } from "../by-template/outputs.ts";
import { placeReferences } from "../by-template/references.ts";
import { checkedTaskId } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { exchangeJson, type JsonReply, jsonBody, urlOf } from "../media/exchange.ts";
import { failed, isWorthRepeating, StatusError, toGenerationError } from "../media/faults.ts";
import { createFileAnswers, type FileAnswers } from "../media/file-answers.ts";
import { generateLimits, generateTimes, generateTries } from "../media/limits.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import { type Look, look, watchTask } from "../media/poll.ts";
import type { CancelTask, GeneratedOutput, GenerationTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";
import { uploadToFal } from "./upload.ts";

/** Bytes of references as data URIs in one request. fal documents no bound, and writing each as JSON takes time. */
const inlineBytes = 4 * 1024 * 1024;
/** Namespaces that fal keeps before owner and app in the name of a request. */
const namespaces = /^(workflows|comfy)$/;

const submitHeaders = {
  // fal's own repeats would be paid for as well. Ours are only for requests that surely did not run.
  "x-fal-no-retry": "1",
  // Seconds in which the request must start. A job has half an hour, and a later start is of no use.
  "x-fal-request-timeout": "1800",
} as const;

/**
 * Generates at fal. It puts a request into the queue of the model in the catalog's call, unless an earlier attempt has. It looks until
 * the request is completed, and stores the files in its result. A failed request is completed too, and its result shows the failure.
 */
export async function generateAtFal(
  context: DriverContext,
  task: GenerationTask,
): Promise<GeneratedOutput[]> {
  const id = task.resumeId ?? (await submit(context, task));
  const url = urlOf(task.upstream, `/${id}`);
  const hasFailed = await watchTask(context, task, {
    url: `${url}/status?logs=0`,
    first: undefined,
    read,
  });
  using answers = createFileAnswers(context, task);
  const result = await resultOf(context, task, { url, hasFailed, answers });
  return await outputsOf(context, task, result, answers);
}

/** Asks fal to cancel a request. One in the queue is removed. One that runs may go on and be finished. */
export async function cancelAtFal(context: DriverContext, task: CancelTask): Promise<boolean> {
  const { upstream, resumeId, signal } = task;
  const url = urlOf(upstream, `/${resumeId}/cancel`);
  const call = { upstream, method: "PUT", url, timeoutMs: generateTimes.lookMs, signal } as const;
  const tries = { most: generateTries.look, mayRepeat: isWorthRepeating, signal };
  try {
    const { body } = await withTries(context, tries, () =>
      exchangeJson(context, call, generateLimits.answerBytes),
    );
    return body.status === "OK" || body.status === "CANCELLATION_REQUESTED";
  } catch (error) {
    // Completed already, or unknown.
    if (error instanceof StatusError && [400, 404].includes(error.status)) return false;
    throw error;
  }
}

/** Resolves with the path of the request, which is stored before any other step. */
async function submit(context: DriverContext, task: GenerationTask): Promise<string> {
  const { upstream, signal } = task;
  const { model } = callOf(task);
  using room = await takeReferenceRoom(context.memory, task);
  const references = await placeReferences(context, task, {
    inlineBytes,
    upload: (reference) => uploadToFal(context, { upstream, signal }, reference),
  });
  const { headers, body } = jsonBody(inputOf(task, references));
  const call = {
    url: urlOf(upstream, `/${model}`),
    headers: { ...headers, ...submitHeaders },
    ...(body === undefined ? {} : { body }),
  };
  const reply = await enqueue(context, task, call);
  room[Symbol.dispose]();
  const id = checkedTaskId(`${appOf(model)}/requests/${queueId(reply.body.request_id)}`);
  await task.saveResumeId(id);
  return id;
}

function isTooEarly(error: unknown): boolean {
  return error instanceof StatusError && error.isTooEarly;
}

/** Owner and app of a model, with its namespace. The path below the app is not part of the URLs of its requests. */
function appOf(model: string): string {
  const parts = model.split("/");
  return parts.slice(0, namespaces.test(parts[0] ?? "") ? 3 : 2).join("/");
}

/** Has the request failed, once it is completed? */
function read({ body }: JsonReply): Look<boolean> {
  if (body.status === "COMPLETED") return { state: "done", result: isFailure(body) };
  // In the queue or running: a place in the queue is no progress.
  return { state: "running", percent: undefined };
}

function isFailure({ error = null, error_type: type = null }: JsonObject): boolean {
  return error !== null || type !== null;
}

/**
 * The result of a failed request has the failure's own status, which may look like a passing one. For a moment fal may answer that a
 * completed request is still in progress.
 */
async function resultOf(
  context: DriverContext,
  { upstream, signal }: GenerationTask,
  { url, hasFailed, answers }: { url: string; hasFailed: boolean; answers: FileAnswers },
): Promise<JsonObject> {
  const call = { upstream, method: "GET", url, timeoutMs: generateTimes.lookMs, signal } as const;
  if (!hasFailed) return (await look(context, call, answers)).body;
  const tries = { most: generateTries.look, mayRepeat: isTooEarly, signal };
  try {
    await withTries(context, tries, () => exchangeJson(context, call, generateLimits.answerBytes));
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof StatusError ? error : undefined;
    const found = toGenerationError(error, true);
    if (cause)
      throw found.fault === "content_policy"
        ? found
        : failed("the upstream's task failed", { cause });
    throw found;
  }
  throw failed("the upstream's task failed");
}
