// Makes the audio of a painted video: calm chords over the noise of the place.

import {
  createNoiseSource,
  fadeEnds,
  highPass,
  lowPass,
  master,
  Resonator,
  type Stereo,
} from "../audio/dsp.ts";
import { addReverb } from "../audio/reverb.ts";
import { createInstrument, createMix, type Mix } from "../music/player.ts";
import {
  BRIGHT_PROGRESSIONS,
  chordDegrees,
  DARK_PROGRESSIONS,
  type Key,
  noteOf,
  SCALES,
} from "../music/theory.ts";
import type { Mood, SceneKind } from "../paint/mood.ts";
import type { Random } from "../seed.ts";

/** Sample rate of a video's audio. */
export const SOUND_RATE = 44_100;

const CHORD_SECONDS = 3;
const PEAK = 0.8;
const HALL_DECAY = 0.84;
const HALL_AMOUNT = 0.4;

/** The background noise of a place: wind, surf, a hum of traffic, or the low drone of space. */
type Bed = "wind" | "surf" | "hum" | "drone";

const BEDS: Record<SceneKind, Bed> = {
  mountains: "wind",
  sea: "surf",
  city: "hum",
  forest: "wind",
  desert: "wind",
  space: "drone",
  ribbons: "drone",
  meadow: "wind",
};

/** The audio of a scene: calm chords and single notes over the noise of the place. */
export function composeSoundtrack(mood: Mood, seconds: number, random: Random): Stereo {
  const mix = createMix(seconds, SOUND_RATE);
  const dark = mood.palette.stars > 0.3 || mood.particles === "rain";
  const key: Key = { root: 52 + random.below(10), scale: dark ? SCALES.dorian : SCALES.lydian };
  const chords = random.pick(dark ? DARK_PROGRESSIONS : BRIGHT_PROGRESSIONS);
  const pad = createInstrument("warm", mix);
  const bell = createInstrument(random.pick(["bell", "pluck", "keys"] as const), mix);
  const count = Math.ceil(seconds / CHORD_SECONDS);
  for (let index = 0; index < count; index++) {
    const chord = chords[index % chords.length] as number;
    const start = index * CHORD_SECONDS;
    chordDegrees(chord, 4).forEach((degree, voice) => {
      const midi = noteOf(key, degree) - (voice > 2 ? 12 : 0);
      const place = (voice - 1.5) * 0.5;
      pad({ start, length: CHORD_SECONDS, midi, loudness: 0.7, place });
    });
    for (let beat = 0; beat < 6; beat++) {
      if (random.next() < 0.4) continue;
      const degree = random.pick(chordDegrees(chord, 4)) + 7;
      const midi = noteOf(key, degree);
      const place = random.between(-0.6, 0.6);
      const loudness = random.between(0.35, 0.7);
      bell({ start: start + (beat * CHORD_SECONDS) / 6, length: 0.5, midi, loudness, place });
    }
  }
  addBed(mix, BEDS[mood.scene], random);
  if (mood.particles === "rain") addRain(mix, random);
  addReverb(mix.dry, mix.wet, SOUND_RATE, HALL_DECAY, HALL_AMOUNT);
  master(mix.dry, PEAK);
  for (const channel of [mix.dry.left, mix.dry.right]) {
    fadeEnds(channel, SOUND_RATE * 0.25, SOUND_RATE * Math.min(1.2, seconds * 0.3));
  }
  return mix.dry;
}

function addBed(mix: Mix, bed: Bed, random: Random): void {
  const pace = random.between(0.09, 0.16);
  [mix.dry.left, mix.dry.right].forEach((channel, side) => {
    const noise = createNoiseSource(random.below(2 ** 30) + side);
    const soft = lowPass(bed === "surf" ? 2600 : bed === "hum" ? 240 : 900, SOUND_RATE);
    const bass = lowPass(90, SOUND_RATE);
    const howl = new Resonator();
    for (let i = 0; i < channel.length; i++) {
      const time = i / SOUND_RATE;
      const swell = 0.5 + 0.5 * Math.sin((time * pace + side * 0.12) * Math.PI * 2);
      const air = noise();
      let sample = 0;
      if (bed === "surf") sample = soft(air) * (0.04 + 0.26 * swell ** 3);
      else if (bed === "hum") sample = soft(air) * 0.16 + Math.sin(time * 345) * 0.012;
      else if (bed === "drone") sample = bass(air) * 0.5 + Math.sin(time * 258) * 0.05 * swell;
      else {
        if (i % 256 === 0) howl.tune(320 + 380 * swell, 160, SOUND_RATE);
        sample = soft(air) * 0.06 * (0.4 + swell) + howl.next(air) * 0.2 * swell;
      }
      channel[i] = (channel[i] as number) + sample;
    }
  });
}

function addRain(mix: Mix, random: Random): void {
  for (const channel of [mix.dry.left, mix.dry.right]) {
    const noise = createNoiseSource(random.below(2 ** 30));
    const bright = highPass(1800, SOUND_RATE);
    for (let i = 0; i < channel.length; i++) {
      channel[i] = (channel[i] as number) + bright(noise()) * 0.07;
    }
  }
}
