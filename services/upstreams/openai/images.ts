// The driver for images by OpenAI's API.

import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import { encodeForm, type FormField } from "../form.ts";
import { begin } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { type Call, type JsonReply, jsonBody, urlOf } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import { fetchOutputs, type OutputFile } from "../media/fetch-output.ts";
import { createFileAnswers, type FileAnswers } from "../media/file-answers.ts";
import { generateLimits } from "../media/limits.ts";
import { loadReferences } from "../media/load-references.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import type { Ask } from "../media/poll.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "../media/port.ts";

type ImageRequest = Extract<GenerationRequest, { kind: "image" }>;

/**
 * Generates images by OpenAI's `/images/generations`, or `/images/edits` where there are references. The answer may hold them in base64
 * or name them. Nothing can be resumed, because the images come with the answer.
 */
export async function generateOpenAiImages(
  context: DriverContext,
  task: GenerationTask,
  request: ImageRequest,
): Promise<GeneratedOutput[]> {
  const { imageAnswerBytes, imageInAnswerBytes } = generateLimits;
  const maxBytes = Math.min(imageAnswerBytes, request.count * imageInAnswerBytes);
  using answers = createFileAnswers(context, task, { maxBytes });
  const { body } = await ask(context, task, request, answers.ask);
  const found = Array.isArray(body.data) ? body.data.slice(0, request.count) : [];
  if (found.length < request.count) throw failed("the upstream made too few images");
  const files = found.map((item) => fileIn(item, answers));
  let stored = 0;
  return await fetchOutputs(context, task, answers, files, () => {
    task.progress(Math.floor((99 * ++stored) / request.count));
  });
}

/** Sends the request. Its references are in memory until the answer has come. */
async function ask(
  context: DriverContext,
  task: GenerationTask,
  request: ImageRequest,
  send: Ask,
): Promise<JsonReply> {
  using _room = await takeReferenceRoom(context.memory, task);
  const call = await callOf(task, request);
  return await begin(task, { takesKey: false }, () => send(call));
}

async function callOf(task: GenerationTask, request: ImageRequest): Promise<Call> {
  const { upstream, upstreamModel, references, signal } = task;
  const fields = {
    model: upstreamModel,
    prompt: request.prompt,
    n: request.count,
    size: request.size ?? `${request.width}x${request.height}`,
    ...(request.quality && { quality: request.quality }),
  };
  const call = { upstream, method: "POST", once: true, signal } as const;
  if (references.length === 0) {
    return { ...call, url: urlOf(upstream, "/images/generations"), ...jsonBody(fields) };
  }
  const loaded = await loadReferences(references, signal);
  const mask = request.hasMask ? loaded.pop() : undefined;
  const field = loaded.length === 1 ? "image" : "image[]";
  const form = await encodeForm([
    ...Object.entries(fields).map(([name, value]): FormField => [name, String(value)]),
    ...loaded.map((reference): FormField => [field, reference]),
    ...(mask ? [["mask", mask] satisfies FormField] : []),
  ]);
  return { ...call, url: urlOf(upstream, "/images/edits"), ...form };
}

/** An image of an answer: in base64, which some servers write as a data URI, or its URL. */
function fileIn(item: JsonValue, answers: FileAnswers): OutputFile {
  const { b64_json: base64, url } = isJsonObject(item) ? item : {};
  if (typeof base64 === "string") return { base64: answers.text(base64) };
  if (typeof url === "string") return { url: answers.text(url) };
  throw failed("the upstream's answer holds no image");
}
