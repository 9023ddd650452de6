// Makes the speech that a request asks for, from its text to the file. `worker.ts` calls it in a thread.

import {
  longestSpeechSeconds,
  type SoundResult,
  type SpeechRequest,
} from "#common/words/builtin-models.ts";
import { pcmRate, soundTypes } from "#kit/sound/formats.ts";
import { fadeEnds } from "../audio/dsp.ts";
import { openMp3 } from "../audio/mp3.ts";
import { openSamples } from "../audio/samples.ts";
import { createRandom, type Random } from "../seed.ts";
import type { Checkpoint } from "../worker.ts";
import { phraseText, type Spoken } from "./phrases.ts";
import { Tract } from "./tract.ts";
import { voiceNamed } from "./voice.ts";

/** Enough for a voice, which has nothing above 12 kHz. It is also the rate of samples without a head. */
const SAMPLE_RATE = pcmRate;
const BITRATE_KBPS = 64;
const LOUDNESS = 0.85;
/** Silence before and after, in seconds. */
const MARGIN_SECONDS = 0.12;
/** Samples that are made before they are encoded: about two seconds. */
const CHUNK_SAMPLES = 49_152;
/** A single phoneme is never longer, even at the slowest pace. */
const LONGEST_SOUND_SECONDS = 2;

/** Speaks a text. The length follows from the text, the voice and the speed. A text that would take too long is spoken faster. */
export async function renderSpeech(
  request: SpeechRequest,
  checkpoint: Checkpoint,
): Promise<SoundResult> {
  const voice = voiceNamed(request.voice);
  const random = randomOf(request);
  const tract = new Tract(voice, SAMPLE_RATE, random.below(2 ** 31));
  const { format = "mp3" } = request;
  const sound =
    format === "mp3"
      ? await openMp3({ sampleRate: SAMPLE_RATE, channels: 1, bitrateKbps: BITRATE_KBPS })
      : openSamples(SAMPLE_RATE, format);
  const buffer = new Float32Array(CHUNK_SAMPLES + LONGEST_SOUND_SECONDS * SAMPLE_RATE);
  let filled = 0;
  let total = 0;
  const flush = (): void => {
    checkpoint();
    const chunk = buffer.subarray(0, filled);
    for (let i = 0; i < chunk.length; i++)
      chunk[i] = Math.tanh((chunk[i] as number) * 1.4) * LOUDNESS;
    if (total === 0) fadeEnds(chunk, 200, 0);
    sound.add([chunk]);
    total += filled;
    chunk.fill(0);
    filled = 0;
  };
  const pause = (seconds: number): void => {
    for (let left = Math.round(seconds * SAMPLE_RATE); left > 0; ) {
      const part = Math.min(left, CHUNK_SAMPLES - filled);
      filled += part;
      left -= part;
      if (filled >= CHUNK_SAMPLES) flush();
    }
  };
  pause(MARGIN_SECONDS);
  for (const spoken of soundsWithin(longestSpeechSeconds, request, random)) {
    if ("pauseSeconds" in spoken) {
      pause(spoken.pauseSeconds);
      tract.rest();
    } else {
      filled = tract.speak(spoken, buffer, filled);
      if (filled >= CHUNK_SAMPLES) flush();
    }
  }
  pause(MARGIN_SECONDS);
  flush();
  const bytes = sound.finish();
  return { bytes, mimeType: soundTypes[format], durationSeconds: roundMs(total / SAMPLE_RATE) };
}

/** Seconds of a request's phonemes and pauses together, without the margins. */
export function spokenSeconds(request: SpeechRequest): number {
  const all = soundsWithin(longestSpeechSeconds, request, randomOf(request));
  return all.reduce((sum, one) => sum + secondsOf(one), 0);
}

function randomOf({ voice, text }: SpeechRequest): Random {
  return createRandom(`speech\u0000${voice}\u0000${text}`);
}

/** All phonemes and pauses. They are shortened by the same factor where together they would last longer than `mostSeconds`. */
function soundsWithin(mostSeconds: number, request: SpeechRequest, random: Random): Spoken[] {
  const { text, voice, language, speed } = request;
  const all = Array.from(phraseText(text, voiceNamed(voice), language, speed, random));
  const seconds = all.reduce((sum, one) => sum + secondsOf(one), 0);
  if (seconds <= mostSeconds) return all;
  const share = mostSeconds / seconds;
  return all.map((one) =>
    "pauseSeconds" in one
      ? { pauseSeconds: one.pauseSeconds * share }
      : { ...one, seconds: one.seconds * share },
  );
}

function secondsOf(spoken: Spoken): number {
  return "pauseSeconds" in spoken ? spoken.pauseSeconds : spoken.seconds;
}

function roundMs(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
