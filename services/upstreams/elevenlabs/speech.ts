// The driver for speech by ElevenLabs.

import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { jsonBody, urlOf } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import type { SpeechTask } from "../media/port.ts";
import { soundOf } from "../media/sound-answer.ts";
import { elevenlabs } from "./capabilities.ts";

/**
 * The `output_format` of each format: elevenlabs/elevenlabs-js, src/api/resources/textToSpeech/types/
 * TextToSpeechConvertRequestOutputFormat.ts. MP3 of 192 kbit/s, and samples of 44.1 kHz, need a more expensive plan there. 24 kHz is
 * the rate of OpenAI's `pcm`. There is no AAC and no FLAC.
 */
const outputFormats: Readonly<Record<Made, string>> = {
  mp3: "mp3_44100_128",
  opus: "opus_48000_128",
  wav: "wav_24000",
  pcm: "pcm_24000",
};

type Made = (typeof elevenlabs)["serves"]["speech"]["formats"][number];

/**
 * Speaks by ElevenLabs' `/text-to-speech/{voice}`, or its `/stream` where a caller listens. The answer is the speech. The upstream
 * answers 400 to a value that its model does not take (a speed outside of 0.7 to 1.2, a language).
 */
export async function speakElevenLabs(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const { text, voice, language, speed, format, upstreamModel } = task;
  const made = elevenlabs.serves.speech.formats.find((one) => one === format);
  if (!made) throw failed(`ElevenLabs makes no ${format}`);
  // A stream has no WAV: elevenlabs/elevenlabs-js, TextToSpeechStreamRequestOutputFormat.ts beside the other list.
  const stream = task.hear && made !== "wav" ? "/stream" : "";
  const path = `/text-to-speech/${encodeURIComponent(voice)}${stream}?output_format=${outputFormats[made]}`;
  return soundOf(context, task, {
    upstream,
    url: urlOf(upstream, path),
    ...jsonBody({
      text,
      model_id: upstreamModel,
      ...(language === undefined ? {} : { language_code: language }),
      // Settings of a request replace all those of the voice.
      ...(speed === 1 ? {} : { voice_settings: { speed } }),
    }),
  });
}
