import { piecesOf } from "#kit/base/in-turns.ts";
import { isJsonObject } from "#kit/base/json.ts";
import { isDataUri } from "#kit/images/index.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { download } from "../media/download.ts";
import { exchangeJson, jsonBody, urlOf } from "../media/exchange.ts";
import { failed, isWorthRepeating } from "../media/faults.ts";
import { readInline } from "../media/inline-file.ts";
import { generateLimits, generateTries } from "../media/limits.ts";
import type { SpeechTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";
import { readSound, soundOf } from "../media/sound-answer.ts";
import { fileUrl } from "./outputs.ts";

/**
 * Speaks at another deployment of this API, under the request's own idempotency key, and downloads the MP3. In another format, the
 * answer itself is the speech. A deployment or model that does not make the format answers 400.
 */
export async function speakAtGenmesh(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const { signal, text: input, voice, language, speed, format } = task;
  const value = { model: task.upstreamModel, input, voice, speed, ...(language && { language }) };
  const key = { "idempotency-key": task.requestId };
  if (format !== "mp3") {
    const { headers, ...rest } = jsonBody({ ...value, response_format: format });
    const url = urlOf(upstream, "/audio/speech");
    return soundOf(context, task, { upstream, url, ...rest, headers: { ...headers, ...key } });
  }
  const { headers, ...rest } = jsonBody(value);
  const posted = urlOf(upstream, "/speech/generations");
  const call = {
    upstream,
    method: "POST",
    url: posted,
    headers: { ...headers, ...key },
    ...rest,
    signal,
  } as const;
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
