// The driver for video by OpenAI's API.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { isPolicyCode } from "../call.ts";
import { encodeForm, type FormField } from "../form.ts";
import { begin, checkedTaskId } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { videoDimensions } from "../media/dimensions.ts";
import { download } from "../media/download.ts";
import { exchangeJson, type JsonReply, urlOf } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import { generateLimits } from "../media/limits.ts";
import { loadReferences } from "../media/load-references.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import { type Look, watchTask } from "../media/poll.ts";
import {
  type GeneratedOutput,
  GenerationError,
  type GenerationRequest,
  type GenerationTask,
} from "../media/port.ts";
import { storeStream, videoOutput } from "../media/store-output.ts";

type VideoRequest = Extract<GenerationRequest, { kind: "video" }>;

/**
 * Generates a video by OpenAI's `/videos`. It creates the video (unless an earlier attempt has), watches it, and stores its content.
 * The upstream takes one reference, the first frame.
 */
export async function generateOpenAiVideo(
  context: DriverContext,
  task: GenerationTask,
  request: VideoRequest,
): Promise<GeneratedOutput[]> {
  const { upstream, signal } = task;
  const { id, first } = await idOf(context, task, request);
  const url = urlOf(upstream, `/videos/${encodeURIComponent(id)}`);
  await watchTask(context, task, { url, first, read });
  const output = videoOutput(request.durationSeconds);
  const content = { upstream, url: `${url}/content`, accept: output.mimeType, signal };
  const stored = await download(context, { ...content, ...output }, (chunks) =>
    storeStream(task, output, chunks),
  );
  return [stored];
}

async function idOf(
  context: DriverContext,
  task: GenerationTask,
  request: VideoRequest,
): Promise<{ id: string; first: JsonReply | undefined }> {
  if (task.resumeId !== undefined) return { id: task.resumeId, first: undefined };
  const first = await create(context, task, request);
  const id = checkedTaskId(first.body.id);
  await task.saveResumeId(id);
  return { id, first };
}

async function create(
  context: DriverContext,
  task: GenerationTask,
  request: VideoRequest,
): Promise<JsonReply> {
  const { upstream, references, signal } = task;
  if (references.length > 1) throw failed("the upstream takes one reference");
  const { width, height } = videoDimensions(request.resolution, request.aspectRatio, references[0]);
  using _room = await takeReferenceRoom(context.memory, task);
  const loaded = await loadReferences(references, signal);
  const form = await encodeForm([
    ["model", task.upstreamModel],
    ["prompt", request.prompt],
    ["seconds", String(request.durationSeconds)],
    ["size", `${width}x${height}`],
    ...loaded.map((reference): FormField => ["input_reference", reference]),
  ]);
  const url = urlOf(upstream, "/videos");
  const call = { upstream, method: "POST", url, once: true, signal, ...form } as const;
  return await begin(task, { takesKey: false }, () =>
    exchangeJson(context, call, generateLimits.answerBytes),
  );
}

function read({ body }: JsonReply): Look<undefined> {
  switch (body.status) {
    case "completed":
    case "succeeded":
      return { state: "done", result: undefined };
    case "failed":
    case "cancelled":
    case "expired":
      throw failureOf(body.error);
    default:
      return { state: "running", percent: percentOf(body) };
  }
}

/** The GenerationError for the error object of a failed task. */
export function failureOf(error: unknown): GenerationError {
  const code = isJsonObject(error) ? error.code : undefined;
  const fault = isPolicyCode(code) ? "content_policy" : "failed";
  return new GenerationError(fault, "the upstream's task failed");
}

/** Progress of a task, 0 to 100, where the answer has it. */
export function percentOf({ progress }: JsonObject): number | undefined {
  return typeof progress === "number" && Number.isFinite(progress) ? progress : undefined;
}
