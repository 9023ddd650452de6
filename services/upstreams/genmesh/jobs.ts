// The driver for images, video and music by another genmesh: submits a job there, watches it, and cancels it.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { begin, checkedTaskId } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { exchangeJson, type JsonReply, jsonBody, urlOf } from "../media/exchange.ts";
import { errorOfBeginning, failed, isWorthRepeating, StatusError } from "../media/faults.ts";
import { generateLimits, generateTimes, generateTries } from "../media/limits.ts";
import { type Look, watchTask } from "../media/poll.ts";
import {
  type CancelTask,
  type GeneratedOutput,
  GenerationError,
  type GenerationRequest,
  type GenerationTask,
  NotTakenError,
} from "../media/port.ts";
import { withTries } from "../media/retries.ts";
import { failureOf, percentOf } from "../openai/videos.ts";
import { generatedFrom } from "./outputs.ts";
import { uploadReferences } from "./references.ts";

/** The path of each kind, and the field with its outputs. */
const kinds = {
  image: { path: "/images/generations", outputs: "images" },
  video: { path: "/videos/generations", outputs: "videos" },
  music: { path: "/music/generations", outputs: "clips" },
} as const;

/**
 * Generates at another deployment of this API. It submits the job under this job's own idempotency key, so that any repeat finds the
 * same job there. It watches the job, and downloads its outputs.
 */
export async function generateAtGenmesh(
  context: DriverContext,
  task: GenerationTask,
  request: GenerationRequest,
): Promise<GeneratedOutput[]> {
  const { path, outputs } = kinds[request.kind];
  const { id, first } = await idOf(context, task, request);
  const url = urlOf(task.upstream, `${path}/${encodeURIComponent(id)}`);
  const job = await watchTask(context, task, { url, first, read });
  const items = Array.isArray(job[outputs]) ? job[outputs].filter(isJsonObject) : [];
  return generatedFrom(context, task, { request, items, filesUrl: `${url}/files` });
}

/** Cancels a job there. One that has ended otherwise is not changed. */
export async function cancelAtGenmesh(context: DriverContext, task: CancelTask): Promise<boolean> {
  const { upstream, kind, resumeId, signal } = task;
  const url = urlOf(upstream, `${kinds[kind].path}/${encodeURIComponent(resumeId)}/cancel`);
  const call = { upstream, method: "POST", url, timeoutMs: generateTimes.lookMs, signal } as const;
  // 409: it has ended there.
  const mayRepeat = (error: unknown) =>
    isWorthRepeating(error) && !(error instanceof StatusError && error.status === 409);
  const tries = { most: generateTries.look, mayRepeat, signal };
  const { body } = await withTries(context, tries, () =>
    exchangeJson(context, call, generateLimits.answerBytes),
  );
  return isJsonObject(body.error) && body.error.code === "job_cancelled";
}

async function idOf(
  context: DriverContext,
  task: GenerationTask,
  request: GenerationRequest,
): Promise<{ id: string; first: JsonReply | undefined }> {
  if (task.resumeId !== undefined) return { id: task.resumeId, first: undefined };
  const uploaded = await uploadReferences(context, task);
  const body = { model: task.upstreamModel, ...bodyOf(request, uploaded.fileIds) };
  const first = await submit(context, task, kinds[request.kind].path, body).catch(async (error) => {
    // The job that is submitted again names the same files.
    const waits = error instanceof NotTakenError && error.refusal !== "denied";
    const isOver = !waits && !isWorthRepeating(error);
    if (isOver) await uploaded.remove();
    throw error;
  });
  const id = checkedTaskId(first.body.id);
  await task.saveResumeId(id);
  // The job there has pinned the files, and their quota is needed for the next job.
  await uploaded.remove();
  return { id, first };
}

/** The same key finds the same job after any end of an earlier try. So the answer is requested again while it is unknown. */
async function submit(
  context: DriverContext,
  task: GenerationTask,
  path: string,
  value: JsonObject,
): Promise<JsonReply> {
  const { upstream, idempotencyKey, signal } = task;
  const { headers, body } = jsonBody(value);
  const call = {
    upstream,
    method: "POST",
    url: urlOf(upstream, path),
    headers: { ...headers, "idempotency-key": idempotencyKey },
    ...(body === undefined ? {} : { body }),
    timeoutMs: generateTimes.submitMs,
    signal,
  } as const;
  const mayRepeat = (error: unknown) =>
    isWorthRepeating(error) && !errorOfBeginning(error, { takesKey: true });
  const tries = { most: generateTries.start, mayRepeat, signal };
  return begin(task, { takesKey: true }, () =>
    withTries(context, tries, () => exchangeJson(context, call, generateLimits.answerBytes)),
  );
}

function bodyOf(request: GenerationRequest, fileIds: readonly string[]): JsonObject {
  const { negativePrompt, seed } = request;
  const extras = sent({ negativePrompt, seed });
  const references = fileIds.length > 0 ? { referenceFileIds: [...fileIds] } : {};
  switch (request.kind) {
    case "image": {
      const { prompt, count: n, size, resolution, aspectRatio, quality } = request;
      const shape = sent({ size, resolution, aspectRatio, quality });
      return { prompt, n, ...shape, ...extras, ...references };
    }
    case "video": {
      const { prompt, durationSeconds: seconds, resolution, aspectRatio } = request;
      return { prompt, seconds, resolution, aspectRatio, ...extras, ...references };
    }
    case "music": {
      const { mode, title, description, lyrics } = request;
      return { mode, title, ...sent({ description, lyrics }), ...extras };
    }
  }
}

/** Leaves out fields that were not sent. */
function sent(fields: { [name: string]: JsonValue | undefined }): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, JsonValue] => field[1] !== undefined),
  );
}

function read({ body }: JsonReply): Look<JsonObject> {
  if (body.status === "completed") return { state: "done", result: body };
  if (body.status === "failed") throw endThere(body.error);
  if (body.terminal === true) throw failed("the upstream's task failed");
  return { state: "running", percent: percentOf(body) };
}

/** The meaning of the error of a job that failed there. A job that no upstream took there ends the same way here. */
function endThere(error: JsonValue | undefined): GenerationError {
  const isUntaken = isJsonObject(error) && error.code === "service_unavailable";
  if (!isUntaken) return failureOf(error);
  return new GenerationError("unavailable", "no upstream of the other deployment took the job");
}
