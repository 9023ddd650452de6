import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  bytesAnswer,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import { closedBaseUrl } from "../../../test/support/scripted-upstream.ts";
import { sampleMp3, sampleMp4 } from "./samples.fixture.ts";
import { createWorld, speechTask, upstreamAt, upstreamKey } from "./world.fixture.ts";

const sound = sampleMp3(3);
const start = (protocol: "openai" | "genmesh") =>
  startScriptedMediaUpstream(protocol, { images: [], video: sampleMp4(), sound });

describe("speech of an OpenAI upstream", () => {
  test("is a whole MP3 and its length", async () => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    const spoken = await world.upstreams.speak(speechTask([upstreamAt(upstream.baseUrl)]));
    expect(Buffer.from(spoken.bytes)).toEqual(sound);
    expect(spoken.durationSeconds).toBeCloseTo(3, 1);
    const [seen] = upstream.seen("POST /audio/speech");
    expect(seen?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
    expect(seen?.body).toEqual({
      ...{ model: "tts-up", input: "Hello there.", voice: "alloy", speed: 1.25 },
      response_format: "mp3",
    });
  });

  test.each([
    ["JSON", bytesAnswer(Buffer.from('{"audio":""}'), "application/json")],
    ["a WAV", bytesAnswer(Buffer.from("RIFF....WAVEfmt and so on and on"), "audio/mpeg")],
    ["nothing", bytesAnswer(Buffer.alloc(0), "audio/mpeg")],
  ])("fails where the answer is %s", async (_, behaviour) => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    upstream.always("POST /audio/speech", behaviour);
    const work = world.upstreams.speak(speechTask([upstreamAt(upstream.baseUrl)]));
    await expect(work).rejects.toMatchObject({ fault: "failed" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("is unknown where it is cut", async () => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    upstream.always("POST /audio/speech", bytesAnswer(sound, "audio/mpeg", { cutAfter: 9000 }));
    const work = world.upstreams.speak(speechTask([upstreamAt(upstream.baseUrl)]));
    await expect(work).rejects.toMatchObject({ fault: "unknown" });
    expect(upstream.requests).toHaveLength(1);
  });
});

describe("speech of another deployment", () => {
  test("is asked for under the request's own key, and downloaded with ours", async () => {
    await using upstream = await start("genmesh");
    await using world = await createWorld();
    upstream.next("POST /speech/generations", { kind: "drop" }, { kind: "status", status: 503 });
    const task = speechTask([upstreamAt(upstream.baseUrl, "GENMESH")]);
    const spoken = await world.upstreams.speak(task);
    expect(Buffer.from(spoken.bytes)).toEqual(sound);
    const posted = upstream.seen("POST /speech/generations");
    expect(posted).toHaveLength(3);
    for (const { headers, body } of posted) {
      expect(headers["idempotency-key"]).toBe("speech_1");
      expect(body).toEqual({
        ...{ model: "tts-up", input: "Hello there.", voice: "alloy", speed: 1.25, language: "en" },
      });
    }
    const [file] = upstream.seen("GET /speech/generations/*/files/*");
    expect(file?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
  });

  test("is fetched where we reach it, though it has another name in public", async () => {
    await using upstream = await start("genmesh");
    await using world = await createWorld();
    upstream.wording.publicBase = "https://media.example.com/v1";
    const task = speechTask([upstreamAt(upstream.baseUrl, "GENMESH")]);
    await expect(world.upstreams.speak(task)).resolves.toMatchObject({ durationSeconds: 3.004 });
    expect(upstream.seen("GET /speech/generations/*/files/*")).toHaveLength(1);
  });
});

describe("several upstreams of speech", () => {
  test("are tried in order where one cannot be reached or is too busy", async () => {
    await using busy = await start("openai");
    await using upstream = await start("openai");
    await using world = await createWorld();
    busy.always("POST /audio/speech", { kind: "status", status: 429 });
    const upstreams = [await closedBaseUrl(), busy.baseUrl, upstream.baseUrl];
    const task = speechTask(upstreams.map((baseUrl) => upstreamAt(baseUrl)));
    await expect(world.upstreams.speak(task)).resolves.toMatchObject({ durationSeconds: 3.004 });
    expect(busy.requests).toHaveLength(3);
    expect(upstream.requests).toHaveLength(1);
  });

  test("are not tried after a refusal", async () => {
    await using first = await start("openai");
    await using second = await start("openai");
    await using world = await createWorld();
    const task = speechTask([first, second].map(({ baseUrl }) => upstreamAt(baseUrl)));
    for (const [code, fault] of [
      ["content_policy_violation", "content_policy"],
      ["invalid_value", "failed"],
    ] as const) {
      first.next("POST /audio/speech", { kind: "status", status: 400, code });
      await expect(world.upstreams.speak(task)).rejects.toMatchObject({ fault });
    }
    expect(second.requests).toEqual([]);
  });

  test("are all left at once with the signal", async () => {
    await using first = await start("openai");
    await using second = await start("openai");
    await using world = await createWorld();
    first.always("POST /audio/speech", { kind: "hang" });
    const controller = new AbortController();
    const { signal } = controller;
    const upstreams = [first, second].map(({ baseUrl }) => upstreamAt(baseUrl));
    const work = world.upstreams.speak(speechTask(upstreams, { signal }));
    const seen = await first.request(1);
    const reason = new Error("the caller has left");
    controller.abort(reason);
    await expect(work).rejects.toBe(reason);
    await seen.over;
    expect(second.requests).toEqual([]);
  });

  test("take no more at once than the catalog allows", async () => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    let running = 0;
    let mostAtOnce = 0;
    upstream.always("POST /audio/speech", {
      kind: "custom",
      async handle(_seen, response) {
        running++;
        mostAtOnce = Math.max(mostAtOnce, running);
        // Long enough for whoever would not wait.
        await delay(30);
        running--;
        response.end(sound);
      },
    });
    const two = { ...upstreamAt(upstream.baseUrl), maxConcurrent: 2 };
    await Promise.all(Array.from({ length: 6 }, () => world.upstreams.speak(speechTask([two]))));
    expect(mostAtOnce).toBe(2);
  });
});
