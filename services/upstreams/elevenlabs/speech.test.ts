import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMetrics } from "#kit/base/metrics.ts";
import { createUpstreamAccounts } from "#kit/upstream/accounts.ts";
import {
  type ElevenLabsDouble,
  elevenLabsAnswers,
  startElevenLabs,
} from "../../../test/support/upstreams/elevenlabs.ts";
import type { MediaUpstreamsContext } from "../media/index.ts";
import type { SpeechTask } from "../media/port.ts";
import { createWorld, speechTask, upstreamAt, upstreamKey } from "../media/world.fixture.ts";

const voice = "21m00Tcm4TlvDq8ikWAM";

let double: ElevenLabsDouble;
let second: ElevenLabsDouble;
beforeEach(async () => {
  double = await startElevenLabs({ key: upstreamKey });
  second = await startElevenLabs({ key: upstreamKey });
});
afterEach(async () => {
  await double[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

const at = ({ origin }: ElevenLabsDouble, name: string) =>
  upstreamAt(`${origin}/v1`, "ELEVENLABS", { name });
const task = (asked: Partial<SpeechTask> = {}) =>
  speechTask([at(double, "first"), at(second, "second")], {
    ...{ voice, language: undefined, speed: 1, upstreamModel: "eleven_flash_v2_5" },
    ...asked,
  });

/** A world that counts the reports about operators' accounts. */
async function openWorld() {
  const metrics = createMetrics();
  const lines: string[] = [];
  const log = {
    error: (fields: object, text: string) => lines.push(JSON.stringify({ ...fields, text })),
  };
  const clock = { now: () => 5_000, steady: () => 5_000 };
  const accounts = createUpstreamAccounts({ log, metrics, clock } as unknown as Parameters<
    typeof createUpstreamAccounts
  >[0]);
  const world = await createWorld({ accounts } satisfies Partial<MediaUpstreamsContext>);
  return { ...world, metrics, lines };
}

describe("speech at ElevenLabs", () => {
  test("is a whole MP3 of the voice, with the key in its own header", async () => {
    await using world = await openWorld();
    const spoken = await world.upstreams.speak(task());
    expect(Buffer.from(spoken.bytes).equals(double.sound as Buffer)).toBe(true);
    expect(spoken.durationSeconds).toBeGreaterThan(0.5);
    const [seen] = double.seen("speak");
    expect(seen?.headers).toMatchObject({ "xi-api-key": upstreamKey, accept: "audio/mpeg" });
    expect(seen?.headers.authorization).toBeUndefined();
    // Settings of the request would replace all settings of the voice.
    expect(seen?.body).toEqual({ text: "Hello there.", model_id: "eleven_flash_v2_5" });
    expect(double.speeches).toMatchObject([{ voice, format: "mp3_44100_128" }]);
  });

  test.each([
    ["opus", "opus_48000_128", "audio/opus"],
    ["wav", "wav_24000", "audio/wav"],
    ["pcm", "pcm_24000", "audio/pcm"],
  ] as const)("is %s where that is asked for", async (format, asked, accept) => {
    await using world = await openWorld();
    const spoken = await world.upstreams.speak(task({ format }));
    expect(double.speeches).toMatchObject([{ format: asked }]);
    expect(double.seen("speak")[0]?.headers).toMatchObject({ accept });
    expect(spoken.durationSeconds).toBe(1);
  });

  test.each([
    ["mp3", "stream"],
    ["pcm", "stream"],
    ["wav", "speak"],
  ] as const)("is a stream where someone listens, except for WAV: %s", async (format, route) => {
    await using world = await openWorld();
    const heard: Uint8Array[] = [];
    const spoken = await world.upstreams.speak(
      task({ format, hear: (piece) => void heard.push(piece) }),
    );
    expect(Buffer.concat(heard).equals(spoken.bytes)).toBe(true);
    expect(double.requests.map(({ path }) => path.endsWith("/stream"))).toEqual([
      route === "stream",
    ]);
    expect(double.seen(route)).toHaveLength(1);
  });

  test.each(["aac", "flac"] as const)("is never %s, and nothing is asked for", async (format) => {
    await using world = await openWorld();
    await expect(world.upstreams.speak(task({ format }))).rejects.toMatchObject({
      fault: "failed",
    });
    expect([double.requests, second.requests]).toEqual([[], []]);
  });

  test("is asked for in the caller's language and speed", async () => {
    await using world = await openWorld();
    await world.upstreams.speak(task({ language: "de", speed: 1.2 }));
    expect(double.seen("speak")[0]?.body).toMatchObject({
      ...{ language_code: "de", voice_settings: { speed: 1.2 } },
    });
  });

  test.each([
    ["a speed that it does not have", { speed: 2 }],
    [
      "a language that the model is not told",
      { language: "de", upstreamModel: "eleven_multilingual_v2" },
    ],
  ])("fails for the caller with %s, at no further upstream", async (_, asked) => {
    await using world = await openWorld();
    const work = world.upstreams.speak(task(asked));
    await expect(work).rejects.toMatchObject({ fault: "failed", cause: { status: 400 } });
    expect(second.requests).toEqual([]);
  });

  test("is refused for its content", async () => {
    await using world = await openWorld();
    double.next("speak", elevenLabsAnswers.againstPolicy);
    const work = world.upstreams.speak(task());
    await expect(work).rejects.toMatchObject({ fault: "content_policy" });
    expect(second.requests).toEqual([]);
    expect(world.logLines.join("")).not.toContain("Terms of Service");
  });

  test("waits for its place where too many are under way", async () => {
    await using world = await openWorld();
    double.next("speak", elevenLabsAnswers.tooManyAtOnce, elevenLabsAnswers.busy);
    await world.upstreams.speak(task());
    expect(double.paid()).toHaveLength(1);
    expect(second.requests).toEqual([]);
  });

  test.each(["quotaExceeded", "insufficientCredits"] as const)(
    "goes to the next upstream where the account is empty (%s), and the operator is told",
    async (answer) => {
      await using world = await openWorld();
      double.always("speak", elevenLabsAnswers[answer]);
      await world.upstreams.speak(task());
      await world.upstreams.speak(task());
      expect([double.paid().length, second.paid().length]).toEqual([0, 2]);
      // It rests: an empty account stays empty.
      expect(double.seen("speak")).toHaveLength(1);
      const told = (await world.metrics.read()).find(({ name }) => /account_empty/.test(name));
      expect(told?.values).toEqual([{ labels: { upstream: "first" }, value: 5 }]);
      expect(world.lines).toHaveLength(1);
      expect(world.lines[0]).toContain('"upstream":"first"');
      second.always("speak", elevenLabsAnswers[answer]);
      const work = world.upstreams.speak(task());
      await expect(work).rejects.toMatchObject({ refusal: "account_empty", isCertain: true });
    },
  );

  test.each([
    ["a wrong key", elevenLabsAnswers.invalidKey],
    ["a voice that is not there", elevenLabsAnswers.unknownVoice],
    ["a server that breaks down", elevenLabsAnswers.down],
  ])("goes to the next upstream with %s", async (_, answer) => {
    await using world = await openWorld();
    double.always("speak", answer);
    await world.upstreams.speak(task());
    expect(second.paid()).toHaveLength(1);
  });

  test.each([
    ["lost", { kind: "lost" }],
    ["cut", { kind: "file", cutAfter: 1_000 }],
    ["lost on the way", { kind: "status", status: 502 }],
    ["no sound", { kind: "file", type: "application/json" }],
  ] as const)("is never asked for twice where its answer is %s", async (what, mishap) => {
    await using world = await openWorld();
    if (what === "no sound") double.sound = Buffer.from("{}");
    double.next("speak", mishap);
    await expect(world.upstreams.speak(task())).rejects.toMatchObject({
      fault: what === "no sound" ? "failed" : "unknown",
    });
    expect(double.seen("speak")).toHaveLength(1);
    expect(second.requests).toEqual([]);
  });
});
