import { isDataUri, readImageUri } from "#kit/images/index.ts";
import { isJsonObject, type JsonValue } from "#kit/json.ts";
import { encodeForm, type FormField } from "../form.ts";
import { begin } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { bodyOf } from "../media/download.ts";
import { type Call, exchangeJson, type JsonReply, jsonBody, urlOf } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import { fetchOutput } from "../media/fetch-output.ts";
import { generateLimits } from "../media/limits.ts";
import { loadReferences } from "../media/load-references.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "../media/port.ts";
import { spool } from "../media/spool.ts";
import { storeImage } from "../media/verify-output.ts";

type ImageRequest = Extract<GenerationRequest, { kind: "image" }>;

/**
 * Generates images by OpenAI's `/images/generations`, or `/images/edits` where there are references. The answer may carry
 * them in base64 or name them. Nothing can be resumed: the images come with the answer.
 */
export async function generateOpenAiImages(
  context: DriverContext,
  task: GenerationTask,
  request: ImageRequest,
): Promise<GeneratedOutput[]> {
  const { imageAnswerBytes, imageInAnswerBytes } = generateLimits;
  const maxBytes = Math.min(imageAnswerBytes, request.count * imageInAnswerBytes);
  await using answer = new AsyncDisposableStack();
  const { body } = await ask(context, task, request, (call) =>
    exchangeJson(context, call, maxBytes, async (reply) =>
      answer.use(await spool(context, task, bodyOf(reply, maxBytes), maxBytes)).load(),
    ),
  );
  const found = Array.isArray(body.data) ? body.data.slice(0, request.count) : [];
  if (found.length < request.count) throw failed("the upstream made too few images");
  const outputs = new Map<number, GeneratedOutput>();
  const add = (index: number, output: GeneratedOutput) => {
    outputs.set(index, output);
    task.progress(Math.floor((99 * outputs.size) / request.count));
  };
  const named: { index: number; url: string }[] = [];
  for (const [index, item] of found.entries()) {
    const image = await imageIn(item);
    if (typeof image === "string") named.push({ index, url: image });
    else add(index, await storeImage(context, task, image));
  }
  // No task holds room while it waits for an upstream, or for more room.
  await answer.disposeAsync();
  for (const { index, url } of named) add(index, await fetchOutput(context, task, { url }));
  return found.flatMap((_, index) => outputs.get(index) ?? []);
}

/** Sends the request; its references lie in memory until the answer has come. */
async function ask(
  context: DriverContext,
  task: GenerationTask,
  request: ImageRequest,
  send: (call: Call) => Promise<JsonReply>,
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
  };
  const call = { upstream, method: "POST", once: true, signal } as const;
  if (references.length === 0) {
    return { ...call, url: urlOf(upstream, "/images/generations"), ...jsonBody(fields) };
  }
  const loaded = await loadReferences(references, signal);
  const field = loaded.length === 1 ? "image" : "image[]";
  const form = await encodeForm([
    ...Object.entries(fields).map(([name, value]): FormField => [name, String(value)]),
    ...loaded.map((reference): FormField => [field, reference]),
  ]);
  return { ...call, url: urlOf(upstream, "/images/edits"), ...form };
}

/** The image that is part of an answer, or its URL. */
async function imageIn(item: JsonValue): Promise<Uint8Array | string> {
  if (!isJsonObject(item)) throw failed("the upstream's answer holds no image");
  if (typeof item.b64_json === "string") return Buffer.from(item.b64_json, "base64");
  if (typeof item.url !== "string") throw failed("the upstream's answer holds no image");
  const inline = isDataUri(item.url) ? await readImageUri(item.url) : undefined;
  return inline?.bytes ?? item.url;
}
