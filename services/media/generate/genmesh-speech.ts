import { isJsonObject } from "#kit/json.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "./context.ts";
import { downloadBytes } from "./download.ts";
import { exchangeJson, jsonBody, urlOf } from "./exchange.ts";
import { failed, isWorthRepeating } from "./faults.ts";
import { fileUrl } from "./genmesh-outputs.ts";
import { generateLimits, generateTries } from "./limits.ts";
import type { SpeechTask } from "./port.ts";
import { withTries } from "./retries.ts";

/** Speaks at another deployment of this API, under the request's own idempotency key, and downloads the MP3. */
export async function speakAtGenmesh(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const { signal, text: input, voice, language, speed } = task;
  const value = { model: task.upstreamModel, input, voice, speed, ...(language && { language }) };
  const { headers, ...rest } = jsonBody(value);
  const url = urlOf(upstream, "/speech/generations");
  const call = {
    upstream,
    method: "POST",
    url,
    headers: { ...headers, "idempotency-key": task.requestId },
    ...rest,
    signal,
  } as const;
  const tries = { most: generateTries.start, mayRepeat: isWorthRepeating, signal };
  const { body } = await withTries(context, tries, () => {
    task.sending();
    return exchangeJson(context, call, generateLimits.answerBytes);
  });
  if (!isJsonObject(body.audio)) throw failed("the upstream's answer names no file");
  const filesUrl = `${url}/${typeof body.id === "string" ? encodeURIComponent(body.id) : ""}/files`;
  const maxBytes = generateLimits.speechBytes;
  return downloadBytes(context, {
    upstream,
    url: fileUrl(upstream, body.audio, filesUrl),
    maxBytes,
    accept: "audio/mpeg",
    signal,
  });
}
