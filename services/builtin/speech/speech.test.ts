import { describe, expect, test } from "vitest";
import { longestSpeechSeconds } from "#common/words/builtin-models.ts";
import { secondsOf } from "#kit/sound/seconds.ts";
import { readMp3 } from "../testing/probe.ts";
import { soundsOf } from "./letters.ts";
import { renderSpeech, spokenSeconds } from "./speech.ts";
import { voiceNamed } from "./voice.ts";

const TEXT = "The quick brown fox jumps over the lazy dog.";

async function speak(text: string, voice = "alloy", speed = 1) {
  const result = await renderSpeech({ text, voice, speed }, () => {});
  return { ...result, facts: readMp3(result.bytes) };
}

describe("renderSpeech", () => {
  test("is an MP3 of the length that it names, at the pace of a speaker", async () => {
    const { durationSeconds, facts, mimeType } = await speak(TEXT);
    expect(mimeType).toBe("audio/mpeg");
    expect(facts).toMatchObject({ sampleRate: 24_000, channels: 1 });
    expect(Math.abs(facts.durationSeconds - durationSeconds)).toBeLessThan(0.12);
    expect(durationSeconds).toBeGreaterThan(2);
    expect(durationSeconds).toBeLessThan(5);
  });

  test("is the same speech as samples, in a WAV or alone", async () => {
    const mp3 = await renderSpeech({ text: TEXT, voice: "alloy", speed: 1 }, () => {});
    const [wav, pcm] = await Promise.all(
      (["wav", "pcm"] as const).map((format) =>
        renderSpeech({ text: TEXT, voice: "alloy", speed: 1, format }, () => {}),
      ),
    );
    expect([wav?.mimeType, pcm?.mimeType]).toEqual(["audio/wav", "audio/pcm"]);
    expect(wav?.bytes.subarray(44)).toEqual(pcm?.bytes);
    expect(secondsOf(wav?.bytes ?? new Uint8Array(), "wav")).toBeCloseTo(mp3.durationSeconds, 2);
    expect(secondsOf(pcm?.bytes ?? new Uint8Array(), "pcm")).toBeCloseTo(mp3.durationSeconds, 2);
    // It can be heard: silence would be zeros.
    expect(new Set(pcm?.bytes).size).toBe(256);
  });

  test("the length follows text and speed", async () => {
    const normal = (await speak(TEXT)).durationSeconds;
    const twice = (await speak(`${TEXT} ${TEXT}`)).durationSeconds;
    expect(twice / normal).toBeGreaterThan(1.7);
    expect(twice / normal).toBeLessThan(2.2);
    const margins = 0.24;
    for (const speed of [0.25, 0.5, 2, 4]) {
      const { durationSeconds } = await speak(TEXT, "alloy", speed);
      const ratio = (normal - margins) / (durationSeconds - margins);
      expect(Math.abs(ratio / speed - 1)).toBeLessThan(0.02);
    }
  });

  test("is the same for the same request and differs with voice and text", async () => {
    const first = (await speak(TEXT)).bytes;
    expect((await speak(TEXT)).bytes).toEqual(first);
    const others = [
      await speak(TEXT, "onyx"),
      await speak(TEXT, "somebody"),
      await speak("Hello."),
    ];
    const distinct = new Set([first, ...others.map(({ bytes }) => bytes)].map(String));
    expect(distinct.size).toBe(4);
  });

  test.each([
    "12 34",
    "Привет, мир!",
    "Γειά σου",
    "こんにちは世界",
    "안녕하세요",
    "!?…",
    " ",
    "\ud800",
  ])("%j can be spoken", async (text) => {
    const { facts } = await speak(text);
    expect(facts.durationSeconds).toBeGreaterThan(0.2);
  });

  const tooLong: [of: string, text: string, speed: number][] = [
    ["digits", "9".repeat(4_096), 0.25],
    ["numbers", "9999999999999 ".repeat(300).slice(0, 4_096), 0.25],
    ["pauses", ".".repeat(4_096), 0.25],
    ["lines", "\n".repeat(4_096), 0.25],
    ["letters of an unknown script", "世".repeat(4_096), 1],
  ];

  test.each(tooLong)(
    "a text of %s is not spoken for longer than a speech may last",
    (_, text, speed) => {
      const seconds = spokenSeconds({ text, voice: "alloy", speed });
      expect(seconds).toBeGreaterThan(longestSpeechSeconds - 1);
      expect(seconds).toBeLessThan(longestSpeechSeconds + 1);
    },
  );

  // One of phonemes and one of pauses. Rendering each takes seconds, and is as long as the spoken text.
  test.each(tooLong.filter(([of]) => of === "digits" || of === "pauses"))(
    "a text of %s renders as long as it is spoken",
    { timeout: 240_000 },
    async (_, text, speed) => {
      const { durationSeconds, facts } = await speak(text, "alloy", speed);
      const seconds = spokenSeconds({ text, voice: "alloy", speed });
      expect(Math.abs(durationSeconds - seconds)).toBeLessThan(5);
      expect(Math.abs(facts.durationSeconds - durationSeconds)).toBeLessThan(0.2);
    },
  );

  test("prose of the longest text is spoken at its own pace", () => {
    const text = `${TEXT} `.repeat(100).slice(0, 4_096);
    const seconds = spokenSeconds({ text, voice: "alloy", speed: 1 });
    expect(seconds).toBeLessThan(longestSpeechSeconds - 5);
  });

  test("stops where it is told to", async () => {
    const checkpoint = (): void => {
      throw new Error("stop");
    };
    const stopped = renderSpeech({ text: TEXT, voice: "alloy", speed: 1 }, checkpoint);
    await expect(stopped).rejects.toThrow("stop");
  });
});

describe("soundsOf", () => {
  test.each([
    ["the", "en", "dh ax"],
    ["night", "en", "n ay t"],
    ["make", "en", "m ey k"],
    ["bright", undefined, "b r ay t"],
    ["shell", "en", "sh eh l"],
    ["zwei", "de", "t s v ay"],
    ["schön", "de", "sh oe n"],
    ["мир", "ru", "m iy r"],
    ["7", "en", "s eh v eh n"],
    ["café", "en", "k ae f eh"],
  ])("%s (%s)", (word, language, sounds) => {
    expect(soundsOf(word, language).join(" ")).toBe(sounds);
  });

  test.each(["constructor", "__proto__", "toString"])("%s is a word like any other", (word) => {
    expect(soundsOf(word, "en").length).toBeGreaterThan(3);
    expect(voiceNamed(word).pitchHz).toBeGreaterThan(80);
  });

  test("an unknown script has a syllable for each letter", () => {
    expect(soundsOf("世界", "zh")).toHaveLength(4);
  });
});
