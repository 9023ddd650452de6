import { describe, expect, test } from "vitest";
import type { MusicRequest } from "#common/words/builtin-models.ts";
import { createRandom } from "../seed.ts";
import { readMp3 } from "../testing/probe.ts";
import { compose, setLyrics } from "./compose.ts";
import { splitLyrics } from "./lyrics.ts";
import { renderMusic } from "./music.ts";
import { readTaste } from "./style.ts";

async function play(request: Partial<MusicRequest>) {
  const percents: number[] = [];
  const whole = { mode: "instrumental", title: "Evening walk", ...request } as const;
  const result = await renderMusic(
    whole,
    () => {},
    (percent) => percents.push(percent),
  );
  return { ...result, percents };
}

describe("renderMusic", () => {
  test("is a stereo MP3 of 30 to 60 seconds", async () => {
    const tune = await play({});
    const facts = readMp3(tune.bytes);
    expect(tune.mimeType).toBe("audio/mpeg");
    expect(facts).toMatchObject({ sampleRate: 44_100, channels: 2 });
    expect(facts.durationSeconds).toBeGreaterThan(30);
    expect(facts.durationSeconds).toBeLessThan(61);
    expect(Math.abs(facts.durationSeconds - tune.durationSeconds)).toBeLessThan(0.12);
    expect(tune.percents).toEqual(tune.percents.toSorted((one, other) => one - other));
  });

  test("what is sung follows the words; without any that could be sung it is played", async () => {
    const sung = await play({ mode: "lyrics", lyrics: "Down by the river\nwe sing in the rain" });
    const played = await play({ mode: "lyrics", lyrics: "[chorus] …" });
    expect(sung.bytes).not.toEqual(played.bytes);
    expect(readMp3(sung.bytes).durationSeconds).toBeGreaterThan(30);
    expect(readMp3(played.bytes).durationSeconds).toBeGreaterThan(30);
  });

  test("stops where it is told to", async () => {
    let left = 5;
    const checkpoint = (): void => {
      if (left-- === 0) throw new Error("stop");
    };
    const stopped = renderMusic({ mode: "instrumental", title: "x" }, checkpoint, () => {});
    await expect(stopped).rejects.toThrow("stop");
  });
});

describe("compose", () => {
  test("every piece is between 30 and 60 seconds long, for any words", () => {
    for (let index = 0; index < 300; index++) {
      const random = createRandom(`title ${index}`);
      const taste = readTaste(`title ${index}`, random);
      const score = compose(taste, random);
      const seconds = score.bars.length * score.secondsPerBeat * taste.style.beatsPerBar + 3;
      expect(seconds).toBeGreaterThanOrEqual(30);
      expect(seconds).toBeLessThanOrEqual(60);
      for (const bar of score.bars) {
        for (const { degree, beat } of bar.tune) {
          expect(degree).toBeGreaterThanOrEqual(-2);
          expect(degree).toBeLessThanOrEqual(18);
          expect(beat).toBeLessThan(taste.style.beatsPerBar);
        }
      }
    }
  });

  test("words choose the style", () => {
    const random = createRandom("style");
    expect(readTaste("a slow waltz", random).style.beatsPerBar).toBe(3);
    expect(readTaste("techno", random).tempo).toBeGreaterThanOrEqual(120);
    expect(readTaste("sad song", random).dark).toBe(true);
    expect(readTaste("happy song", random).dark).toBe(false);
  });

  test("every syllable of a line gets a note, in order, before the piece ends", () => {
    const random = createRandom("song");
    const score = compose(readTaste("pop", random), random);
    const lines = splitLyrics("[Verse]\nHello golden morning\nBeautiful day");
    expect(lines.map((line) => line.length)).toEqual([6, 4]);
    const notes = setLyrics(score, lines, random);
    expect(notes.slice(0, 6).map(({ syllable }) => syllable)).toEqual(lines[0]);
    const starts = notes.map(({ start }) => start);
    expect(starts).toEqual(starts.toSorted((one, other) => one - other));
    const end = score.bars.length * score.secondsPerBeat * score.taste.style.beatsPerBar;
    expect(starts.at(-1)).toBeLessThan(end);
  });
});
