import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "./context.ts";
import { exchange, jsonBody, urlOf } from "./exchange.ts";
import { isUnsent, StatusError } from "./faults.ts";
import { generateLimits, generateTries } from "./limits.ts";
import type { SpeechTask } from "./port.ts";
import { withTries } from "./retries.ts";

/** Speaks by OpenAI's `/audio/speech`; the answer is the MP3. The language is what the text is in: it is not sent. */
export async function speakOpenAi(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const { signal } = task;
  const call = {
    upstream,
    method: "POST",
    url: urlOf(upstream, "/audio/speech"),
    accept: "audio/mpeg",
    once: true,
    signal,
    ...jsonBody({
      model: task.upstreamModel,
      input: task.text,
      voice: task.voice,
      response_format: "mp3",
      speed: task.speed,
    }),
  } as const;
  const tries = { most: generateTries.start, mayRepeat: isUnsent, signal };
  return withTries(context, tries, async () => {
    task.sending();
    const reply = await exchange(context, call);
    if (reply.status < 300) return reply.body.whole(generateLimits.speechBytes);
    reply.body.close();
    throw new StatusError(reply.status);
  });
}
