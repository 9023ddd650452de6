// Makes the music that a prompt asks for, from its words to the MP3. `worker.ts` calls it in a thread.

import type { MusicRequest, SoundResult } from "#common/words/builtin-models.ts";
import { fadeEnds, master, type Stereo } from "../audio/dsp.ts";
import { openMp3 } from "../audio/mp3.ts";
import { addReverb } from "../audio/reverb.ts";
import { createRandom, seededText } from "../seed.ts";
import type { Checkpoint } from "../worker.ts";
import { playScore } from "./band.ts";
import { compose, setLyrics } from "./compose.ts";
import { splitLyrics } from "./lyrics.ts";
import { createMix } from "./player.ts";
import { createSinger } from "./singer.ts";
import { readTaste } from "./style.ts";

const SAMPLE_RATE = 44_100;
const BITRATE_KBPS = 160;
/** Seconds for which the last chord fades. */
const TAIL_SECONDS = 3;
const PEAK = 0.92;
const HALL_DECAY = 0.82;
/** Samples that are encoded between two looks at the cancel flag: about one second. */
const CHUNK_SAMPLES = 44_100;
/** Shares of the work in percent: playing, then hall and mastering. The rest is encoding. */
const PLAYED_PERCENT = 55;
const MIXED_PERCENT = 70;

/** Composes, plays and records the music that belongs to the words. `onProgress` gets percents. */
export async function renderMusic(
  request: MusicRequest,
  checkpoint: Checkpoint,
  onProgress: (percent: number) => void,
): Promise<SoundResult> {
  const { mode, title, description = "", lyrics = "" } = request;
  const random = createRandom(
    seededText(["music", mode, title, description, lyrics], request.seed),
  );
  const taste = readTaste(`${title} ${description}`, random.fork("taste"));
  const score = compose(taste, random.fork("score"));
  const barSeconds = score.secondsPerBeat * taste.style.beatsPerBar;
  const seconds = score.bars.length * barSeconds + TAIL_SECONDS;
  const mix = createMix(seconds, SAMPLE_RATE);
  const lines = mode === "lyrics" ? splitLyrics(lyrics) : [];
  const sung = lines.length > 0;
  const kicks = playScore(score, mix, !sung, random.fork("band"), (index) => {
    checkpoint();
    onProgress(Math.round((index / score.bars.length) * PLAYED_PERCENT));
  });
  duck(mix.dry, kicks, taste.style.duck);
  if (sung) {
    const sing = createSinger(mix, score.key.root, random.fork("singer"));
    for (const note of setLyrics(score, lines, random.fork("words"))) {
      checkpoint();
      sing(note);
    }
  }
  checkpoint();
  addReverb(mix.dry, mix.wet, SAMPLE_RATE, HALL_DECAY, taste.style.reverb);
  checkpoint();
  master(mix.dry, PEAK);
  for (const channel of [mix.dry.left, mix.dry.right]) {
    fadeEnds(channel, 400, TAIL_SECONDS * SAMPLE_RATE * 0.6);
  }
  onProgress(MIXED_PERCENT);
  const bytes = await encode(mix.dry, checkpoint, onProgress);
  const durationSeconds = Math.round((mix.dry.left.length / SAMPLE_RATE) * 1000) / 1000;
  return { bytes, mimeType: "audio/mpeg", durationSeconds };
}

async function encode(
  sound: Stereo,
  checkpoint: Checkpoint,
  onProgress: (percent: number) => void,
): Promise<Uint8Array> {
  const mp3 = await openMp3({ sampleRate: SAMPLE_RATE, channels: 2, bitrateKbps: BITRATE_KBPS });
  for (let at = 0; at < sound.left.length; at += CHUNK_SAMPLES) {
    checkpoint();
    mp3.add([
      sound.left.subarray(at, at + CHUNK_SAMPLES),
      sound.right.subarray(at, at + CHUNK_SAMPLES),
    ]);
    const share = at / sound.left.length;
    onProgress(Math.round(MIXED_PERCENT + share * (100 - MIXED_PERCENT)));
  }
  return mp3.finish();
}

/** Lowers the other players for a moment at every kick. */
function duck(sound: Stereo, kicks: readonly number[], depth: number): void {
  if (depth === 0) return;
  const length = Math.round(SAMPLE_RATE * 0.22);
  for (const kick of kicks) {
    // The kick itself stays. The dip begins after its click and is deepest where it has faded.
    const from = Math.round((kick + 0.05) * SAMPLE_RATE);
    for (let i = 0; i < length && from + i < sound.left.length; i++) {
      const gain = 1 - depth * 0.6 * Math.sin((i / length) * Math.PI) ** 2;
      sound.left[from + i] = (sound.left[from + i] as number) * gain;
      sound.right[from + i] = (sound.right[from + i] as number) * gain;
    }
  }
}
