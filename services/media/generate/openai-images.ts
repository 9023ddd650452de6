import { parseDataUri } from "#kit/images/index.ts";
import { isJsonObject, type JsonValue } from "#kit/json.ts";
import { begin } from "./begin.ts";
import type { DriverContext } from "./context.ts";
import { downloadBytes } from "./download.ts";
import { type Call, exchangeJson, type JsonReply, jsonBody, urlOf } from "./exchange.ts";
import { failed } from "./faults.ts";
import { generateLimits } from "./limits.ts";
import { takeAnswerRoom, takeImageRoom, takeReferenceRoom } from "./memory.ts";
import { appendReference, formBody, loadReferences } from "./multipart.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "./port.ts";
import { storeImage } from "./verify-output.ts";

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
  const { memory } = context;
  const { imageAnswerBytes, imageInAnswerBytes } = generateLimits;
  const maxBytes = Math.min(imageAnswerBytes, request.count * imageInAnswerBytes);
  using room = new DisposableStack();
  const { body } = await ask(context, task, request, (call) =>
    exchangeJson(context, call, maxBytes, async (reply) => {
      room.use(await takeAnswerRoom(memory, task, reply, maxBytes));
    }),
  );
  const found = Array.isArray(body.data) ? body.data.slice(0, request.count) : [];
  if (found.length < request.count) throw failed("the upstream made too few images");
  const outputs: GeneratedOutput[] = [];
  // Nobody holds room while it waits for more.
  if (found.every(isNamed)) room.dispose();
  for (const item of found) {
    using _room = room.disposed ? await takeImageRoom(memory, task) : undefined;
    const bytes = await bytesOf(context, task, item);
    outputs.push(await storeImage(context, task, bytes));
    task.progress(Math.floor((99 * outputs.length) / request.count));
  }
  return outputs;
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

/** Does the answer name the image, and not hold it? */
function isNamed(item: JsonValue): boolean {
  if (!isJsonObject(item) || typeof item.b64_json === "string") return false;
  return typeof item.url === "string" && !item.url.startsWith("data:");
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
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
  const loaded = await loadReferences(references, signal);
  const field = loaded.length === 1 ? "image" : "image[]";
  for (const reference of loaded) appendReference(form, field, reference);
  return { ...call, url: urlOf(upstream, "/images/edits"), ...(await formBody(form)) };
}

async function bytesOf(
  context: DriverContext,
  { upstream, signal }: GenerationTask,
  item: JsonValue,
): Promise<Uint8Array> {
  if (!isJsonObject(item)) throw failed("the upstream's answer holds no image");
  if (typeof item.b64_json === "string") return Buffer.from(item.b64_json, "base64");
  if (typeof item.url !== "string") throw failed("the upstream's answer holds no image");
  const inline = item.url.startsWith("data:") ? await parseDataUri(item.url) : undefined;
  if (inline) return inline.bytes;
  return downloadBytes(context, {
    upstream,
    url: item.url,
    maxBytes: generateLimits.imageBytes,
    accept: "image/*",
    signal,
  });
}
