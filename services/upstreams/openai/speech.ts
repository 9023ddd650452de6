// The driver for speech by OpenAI's API.

import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { jsonBody, urlOf } from "../media/exchange.ts";
import type { SpeechTask } from "../media/port.ts";
import { soundOf } from "../media/sound-answer.ts";

/** Speaks by OpenAI's `/audio/speech`. The answer is the speech. The language is that of the text, and is not sent. */
export function speakOpenAi(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  return soundOf(context, task, {
    upstream,
    url: urlOf(upstream, "/audio/speech"),
    ...jsonBody({
      model: task.upstreamModel,
      input: task.text,
      voice: task.voice,
      response_format: task.format,
      speed: task.speed,
    }),
  });
}
