// The driver for speech by another genmesh.

import { piecesOf } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { isDataUri } from "#kit/images/index.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { download } from "../media/download.ts";
import { exchangeJson, jsonBody, urlOf } from "../media/exchange.ts";
import { failed, isWorthRepeating, StatusError } from "../media/faults.ts";
import { readInline } from "../media/inline-file.ts";
import { generateLimits, generateTries } from "../media/limits.ts";
import type { SpeechTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";
import { readSound, soundOf } from "../media/sound-answer.ts";
import { fileUrl } from "./outputs.ts";

/**
 * Speaks at another deployment of this API, under the request's own idempotency key, and downloads the MP3. In another format, or where
 * a caller listens, the answer itself is the speech. A deployment or model that does not make the format answers 400.
 */
export async function speakAtGenmesh(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const isMp3 = task.format === "mp3";
  if (isMp3 && !task.hear) return await downloaded(context, task, upstream);
  try {
    const body = { ...bodyOf(task), response_format: task.format };
    const url = urlOf(upstream, "/audio/speech");
    return await soundOf(context, task, { upstream, url, ...underKey(task, body) });
  } catch (error) {
    // Not every deployment has this path. All make MP3s by the other one.
    const lacksPath = error instanceof StatusError && error.status === 404;
    if (!isMp3 || !lacksPath) throw error;
    return await downloaded(context, { ...task, hear: undefined }, upstream);
  }
}

async function downloaded(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const { signal } = task;
  const posted = urlOf(upstream, "/speech/generations");
  const request = underKey(task, bodyOf(task));
  const call = { upstream, method: "POST", url: posted, ...request, signal } as const;
  const tries = { most: generateTries.start, mayRepeat: isWorthRepeating, signal };
  const { body } = await withTries(context, tries, () => {
    task.sending();
    return exchangeJson(context, call, generateLimits.answerBytes);
  });
  if (!isJsonObject(body.audio)) throw failed("the upstream's answer names no file");
  const filesUrl = `${posted}/${typeof body.id === "string" ? encodeURIComponent(body.id) : ""}/files`;
  const maxBytes = generateLimits.speechBytes;
  const url = fileUrl(upstream, body.audio, filesUrl);
  if (isDataUri(url)) return readSound(piecesOf(await readInline(url, maxBytes)), task);
  const file = { upstream, url, maxBytes, accept: "audio/mpeg", signal };
  return download(context, file, (chunks) => readSound(chunks, task));
}

function bodyOf({ upstreamModel, text, voice, speed, language }: SpeechTask): JsonObject {
  return { model: upstreamModel, input: text, voice, speed, ...(language && { language }) };
}

function underKey({ requestId }: SpeechTask, value: JsonObject) {
  const { headers, ...rest } = jsonBody(value);
  return { headers: { ...headers, "idempotency-key": requestId }, ...rest };
}
