import { fadeEnds } from "../audio/dsp.ts";
import { openMp3 } from "../audio/mp3.ts";
import type { Checkpoint } from "../cancel.ts";
import { MAX_SPEECH_SECONDS } from "../limits.ts";
import { createRandom } from "../seed.ts";
import type { SoundResult, SpeechRequest } from "../tasks.ts";
import { phraseText, type Spoken } from "./phrases.ts";
import { Tract } from "./tract.ts";
import { voiceNamed } from "./voice.ts";

/** Enough for a voice: nothing of it lies above 12 kHz. */
const SAMPLE_RATE = 24_000;
const BITRATE_KBPS = 64;
const LOUDNESS = 0.85;
/** Silence before and after, in seconds. */
const MARGIN_SECONDS = 0.12;
/** Samples that are made before they are encoded; about two seconds. */
const CHUNK_SAMPLES = 49_152;
/** A single sound is never longer, even at the slowest pace. */
const LONGEST_SOUND_SECONDS = 2;

/** Speaks a text. The length follows from the text, the voice and the speed; what would be too long is spoken faster. */
export async function renderSpeech(
  request: SpeechRequest,
  checkpoint: Checkpoint,
): Promise<SoundResult> {
  const { text, voice: name, language, speed } = request;
  const voice = voiceNamed(name);
  const random = createRandom(`speech\u0000${name}\u0000${text}`);
  const tract = new Tract(voice, SAMPLE_RATE, random.below(2 ** 31));
  const mp3 = await openMp3({
    sampleRate: SAMPLE_RATE,
    channels: 1,
    bitrateKbps: BITRATE_KBPS,
  });
  const buffer = new Float32Array(CHUNK_SAMPLES + LONGEST_SOUND_SECONDS * SAMPLE_RATE);
  let filled = 0;
  let total = 0;
  const flush = (): void => {
    checkpoint();
    const chunk = buffer.subarray(0, filled);
    for (let i = 0; i < chunk.length; i++)
      chunk[i] = Math.tanh((chunk[i] as number) * 1.4) * LOUDNESS;
    if (total === 0) fadeEnds(chunk, 200, 0);
    mp3.add([chunk]);
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
  for (const spoken of within(
    MAX_SPEECH_SECONDS,
    phraseText(text, voice, language, speed, random),
  )) {
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
  const bytes = mp3.finish();
  return { bytes, mimeType: "audio/mpeg", durationSeconds: roundMs(total / SAMPLE_RATE) };
}

/** All of it, sounds and pauses alike shortened where together they would last longer than `mostSeconds`. */
function within(mostSeconds: number, spoken: Iterable<Spoken>): Spoken[] {
  const all = Array.from(spoken);
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
