// The driver for images, video and music by Replicate: creates a prediction, watches it, and takes its outputs.

import type { JsonObject } from "#kit/base/json.ts";
import { enqueue, queueId } from "../by-template/begin.ts";
import { callOf, inputOf } from "../by-template/call.ts";
import { outputsOf } from "../by-template/outputs.ts";
import { placeReferences, uploadedUrl } from "../by-template/references.ts";
import { encodeForm } from "../form.ts";
import type { DriverContext } from "../media/context.ts";
import { exchangeJson, type JsonReply, jsonBody, urlOf } from "../media/exchange.ts";
import { failed, isWorthRepeating, StatusError } from "../media/faults.ts";
import { createFileAnswers } from "../media/file-answers.ts";
import { generateLimits, generateTimes, generateTries } from "../media/limits.ts";
import type { LoadedReference } from "../media/load-references.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import { type Look, watchTask } from "../media/poll.ts";
import {
  type CancelTask,
  type GeneratedOutput,
  GenerationError,
  type GenerationTask,
} from "../media/port.ts";
import { withTries } from "../media/retries.ts";

/** Bytes of data URIs in one request. Replicate documents 256 kB, and the answer to every look holds the whole input. */
const inlineBytes = 256_000;
/** Bytes of an answer with a prediction: its input, its log and the names of its outputs. */
const predictionBytes = 4 * 1024 * 1024;
/** The longest time of a prediction, a job's half hour. So one whose answer was lost costs no more than that. */
const cancelAfter = "30m";

/**
 * Generates at Replicate. It creates a prediction of the model in the catalog's call (unless an earlier attempt has). It looks until
 * the prediction has ended, and stores its outputs. They exist for an hour.
 */
export async function generateAtReplicate(
  context: DriverContext,
  task: GenerationTask,
): Promise<GeneratedOutput[]> {
  const id = task.resumeId ?? (await submit(context, task));
  const url = urlOf(task.upstream, `/predictions/${encodeURIComponent(id)}`);
  using answers = createFileAnswers(context, task, { freeBytes: predictionBytes });
  const looked = (reply: JsonReply) => {
    const found = read(reply);
    // The next look is only after a pause.
    if (found.state === "running") answers.release();
    return found;
  };
  const watch = { url, first: undefined, ask: answers.ask, read: looked };
  const prediction = await watchTask(context, task, watch);
  return await outputsOf(context, task, prediction, answers);
}

/** Cancels a prediction. One that has ended otherwise is not changed. */
export async function cancelAtReplicate(
  context: DriverContext,
  task: CancelTask,
): Promise<boolean> {
  const { upstream, resumeId, signal } = task;
  const url = urlOf(upstream, `/predictions/${encodeURIComponent(resumeId)}/cancel`);
  const call = { upstream, method: "POST", url, timeoutMs: generateTimes.lookMs, signal } as const;
  const tries = { most: generateTries.look, mayRepeat: isWorthRepeating, signal };
  try {
    const { body } = await withTries(context, tries, () =>
      exchangeJson(context, call, predictionBytes),
    );
    return body.status === "canceled" || body.status === "aborted";
  } catch (error) {
    if (error instanceof StatusError && error.status === 404) return false;
    throw error;
  }
}

/** Resolves with the prediction's id, which is stored before any other step. */
async function submit(context: DriverContext, task: GenerationTask): Promise<string> {
  const { upstream } = task;
  using room = await takeReferenceRoom(context.memory, task);
  const references = await placeReferences(context, task, {
    inlineBytes,
    upload: (reference) => upload(context, task, reference),
  });
  const { path, version } = routeOf(callOf(task).model);
  const { headers, body } = jsonBody({ ...version, input: inputOf(task, references) });
  const call = {
    url: urlOf(upstream, path),
    headers: { ...headers, "cancel-after": cancelAfter },
    ...(body === undefined ? {} : { body }),
  };
  const reply = await enqueue(context, task, call);
  room[Symbol.dispose]();
  const id = queueId(reply.body.id);
  await task.saveResumeId(id);
  return id;
}

/** Official models are requested by their name, all others by a version. */
function routeOf(model: string): { path: string; version: JsonObject } {
  if (model.includes(":")) return { path: "/predictions", version: { version: model } };
  return { path: `/models/${model}/predictions`, version: {} };
}

/** Replicate deletes uploads after a day. */
async function upload(
  context: DriverContext,
  { upstream, signal }: GenerationTask,
  reference: LoadedReference,
): Promise<string> {
  const form = await encodeForm([["content", reference]]);
  const url = urlOf(upstream, "/files");
  const call = { upstream, method: "POST", url, signal, ...form } as const;
  const { body } = await exchangeJson(context, call, generateLimits.answerBytes);
  const { urls } = body as { urls?: { get?: unknown } | null };
  return uploadedUrl(urls?.get);
}

function read({ body }: JsonReply): Look<JsonObject> {
  switch (body.status) {
    case "succeeded":
      if (body.data_removed === true) throw failed("the upstream has removed its outputs");
      return { state: "done", result: body };
    case "failed":
      throw failureOf(body.error);
    // Ended by its deadline, or by its operator.
    case "canceled":
    case "aborted":
      throw failed("the upstream's task was cancelled");
    default:
      return { state: "running", percent: percentIn(body.logs) };
  }
}

/** Failures are text in the models' words. E005 is Replicate's own code of a refusal for content. */
function failureOf(error: unknown): GenerationError {
  const isRefused = typeof error === "string" && refusedWords.test(error.slice(0, longestError));
  const fault = isRefused ? "content_policy" : "failed";
  return new GenerationError(fault, "the upstream's task failed");
}

const refusedWords = /\(E005\)|flagged as sensitive|NSFW content/i;
/** Characters of an error that are read. */
const longestError = 2_000;
/** Characters at the end of a log that are searched for a percentage. */
const logTail = 4_000;

/** The percentage of the last line of a log that has one: " 42%|████      | 5/12". */
function percentIn(logs: unknown): number | undefined {
  if (typeof logs !== "string") return undefined;
  const last = logs
    .slice(-logTail)
    .matchAll(/(\d{1,3})%\|/g)
    .toArray()
    .at(-1);
  return last && Number(last[1]);
}
