import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { soundFormats, soundTypes } from "#kit/sound/formats.ts";
import {
  bytesAnswer,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import { type Behaviour, closedBaseUrl } from "../../../test/support/scripted-upstream.ts";
import { until } from "../../../test/support/until.ts";
import { UnkeptSpeechError } from "./port.ts";
import { sampleMp3, sampleMp4, sampleSound } from "./samples.fixture.ts";
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

  test.each(soundFormats)(
    "is %s where that is asked for, and is measured as that",
    async (format) => {
      await using upstream = await start("openai");
      await using world = await createWorld();
      const task = speechTask([upstreamAt(upstream.baseUrl)], { format });
      const spoken = await world.upstreams.speak(task);
      expect(upstream.seen("POST /audio/speech")[0]).toMatchObject({
        body: { response_format: format },
        headers: { accept: soundTypes[format] },
      });
      expect(spoken.durationSeconds).toBeGreaterThan(1);
      for (const other of soundFormats.filter((one) => one !== format)) {
        upstream.next("POST /audio/speech", bytesAnswer(sampleSound(other), soundTypes[format]));
        await expect(world.upstreams.speak(task)).rejects.toMatchObject({ fault: "failed" });
      }
    },
  );

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

  test("is the answer itself where it is no MP3, under the same key", async () => {
    await using upstream = await start("genmesh");
    await using world = await createWorld();
    upstream.next("POST /audio/speech", { kind: "drop" }, { kind: "status", status: 503 });
    const task = speechTask([upstreamAt(upstream.baseUrl, "GENMESH")], { format: "flac" });
    await expect(world.upstreams.speak(task)).resolves.toMatchObject({ durationSeconds: 2.048 });
    const posted = upstream.seen("POST /audio/speech");
    expect(posted).toHaveLength(3);
    for (const { headers, body } of posted) {
      expect(headers["idempotency-key"]).toBe("speech_1");
      expect(body).toMatchObject({ response_format: "flac", language: "en", speed: 1.25 });
    }
    expect(upstream.seen("POST /speech/generations")).toEqual([]);
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

describe("a sound that is heard", () => {
  const listening = () => {
    const pieces: Uint8Array[] = [];
    return {
      hear: (piece: Uint8Array) => void pieces.push(piece),
      heard: () => Buffer.concat(pieces),
    };
  };

  test.each([
    ["openai", "OPENAI"],
    ["genmesh", "GENMESH"],
  ] as const)("comes piece by piece, before the rest of it: %s", async (name, protocol) => {
    await using upstream = await start(name);
    await using world = await createWorld();
    const rest = Promise.withResolvers<void>();
    upstream.always("POST /audio/speech", {
      kind: "custom",
      async handle(_seen, response) {
        response.writeHead(200, { "content-type": "audio/mpeg" });
        // Too few bytes to tell anything.
        for (const end of [4, 9_000]) {
          const part = sound.subarray(end === 4 ? 0 : 4, end);
          await new Promise((written) => response.write(part, written));
        }
        await rest.promise;
        response.end(sound.subarray(9_000));
      },
    });
    const { hear, heard } = listening();
    const task = speechTask([upstreamAt(upstream.baseUrl, protocol)], { hear });
    const spoken = world.upstreams.speak(task);
    await until("the first part to be heard", () => heard().length === 9_000);
    rest.resolve();
    expect(Buffer.from((await spoken).bytes)).toEqual(sound);
    expect(heard()).toEqual(sound);
    expect(upstream.requests).toHaveLength(1);
  });

  test("is repeated under the same key until something of it is heard, and never after that", async () => {
    await using upstream = await start("genmesh");
    await using other = await start("genmesh");
    await using world = await createWorld();
    const cut = bytesAnswer(sound, "audio/mpeg", { cutAfter: 9_000 });
    upstream.next("POST /audio/speech", { kind: "drop" }, { kind: "status", status: 503 }, cut);
    const { hear, heard } = listening();
    const upstreams = [upstream, other].map(({ baseUrl }) => upstreamAt(baseUrl, "GENMESH"));
    const spoken = world.upstreams.speak(speechTask(upstreams, { hear }));
    await expect(spoken).rejects.toMatchObject({ fault: "unknown" });
    expect(heard()).toEqual(sound.subarray(0, heard().length));
    expect(heard().length).toBeGreaterThan(0);
    expect(upstream.requests).toHaveLength(3);
    expect(other.requests).toEqual([]);
  });

  test("is not heard where another deployment has no such path, and is downloaded there", async () => {
    await using upstream = await start("genmesh");
    await using world = await createWorld();
    upstream.always("POST /audio/speech", { kind: "status", status: 404, code: "unknown_route" });
    const { hear, heard } = listening();
    const task = speechTask([upstreamAt(upstream.baseUrl, "GENMESH")], { hear });
    expect(Buffer.from((await world.upstreams.speak(task)).bytes)).toEqual(sound);
    expect(heard()).toEqual(Buffer.alloc(0));
  });

  test("is nothing that begins as something else, and its connection is closed", async () => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    const page = Buffer.from("<html>so many words</html>");
    upstream.always("POST /audio/speech", bytesAnswer(page, "audio/mpeg", { hangAfter: 20 }));
    const { hear, heard } = listening();
    const task = speechTask([upstreamAt(upstream.baseUrl)], { hear });
    await expect(world.upstreams.speak(task)).rejects.toMatchObject({ fault: "failed" });
    expect(heard()).toEqual(Buffer.alloc(0));
    await until("its connection to be closed", () => upstream.openConnections() === 0);
  });
});

describe("a sound that is larger than any that is kept", () => {
  test.each([
    ["openai", "OPENAI", "mp3", "POST /audio/speech"],
    ["genmesh", "GENMESH", "wav", "POST /audio/speech"],
    ["genmesh", "GENMESH", "mp3", "GET /speech/generations/*/files/*"],
  ] as const)(
    "of %s was spoken (%s, %s), and no other upstream is asked",
    async (name, protocol, format, route) => {
      await using first = await start(name);
      await using second = await start(name);
      await using world = await createWorld();
      first.always(route, endless);
      const upstreams = [first, second].map(({ baseUrl }) => upstreamAt(baseUrl, protocol));
      const work = world.upstreams.speak(speechTask(upstreams, { format }));
      await expect(work).rejects.toBeInstanceOf(UnkeptSpeechError);
      expect(first.seen(route)).toHaveLength(1);
      expect(second.requests).toEqual([]);
      await until("its connection to be closed", () => first.openConnections() <= 1);
    },
  );

  test.each(["mp3", "wav"] as const)(
    "is so too where another deployment charges what it could not keep itself (%s): it is not asked again",
    async (format) => {
      await using upstream = await start("genmesh");
      await using world = await createWorld();
      const route = format === "mp3" ? "POST /speech/generations" : "POST /audio/speech";
      const error = { message: "x", code: "model_request_failed", costUsdMicros: 180 };
      upstream.always(route, {
        kind: "custom",
        handle(_seen, response) {
          response.writeHead(502, { "content-type": "application/json" });
          response.end(JSON.stringify({ error }));
        },
      });
      const task = speechTask([upstreamAt(upstream.baseUrl, "GENMESH")], { format });
      await expect(world.upstreams.speak(task)).rejects.toBeInstanceOf(UnkeptSpeechError);
      expect(upstream.requests).toHaveLength(1);
    },
  );

  test("is so too where there is no room for what has come", async () => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    const reached: number[] = [];
    const reach = async (bytes: number) => {
      reached.push(bytes);
      if (bytes > 20_000) throw new UnkeptSpeechError(new Error("no room"));
    };
    const task = speechTask([upstreamAt(upstream.baseUrl)], { reach });
    await expect(world.upstreams.speak(task)).rejects.toBeInstanceOf(UnkeptSpeechError);
    expect(reached.at(-1)).toBeGreaterThan(20_000);
    expect(upstream.requests).toHaveLength(1);
  });
});

/** Endless silence, sent as fast as it is taken. */
const endless: Behaviour = {
  kind: "custom",
  async handle(_seen, response) {
    response.writeHead(200, { "content-type": "audio/mpeg" });
    const piece = Buffer.alloc(64 * 1024);
    const pieces = function* () {
      for (;;) yield piece;
    };
    // It ends as its reader leaves.
    await pipeline(Readable.from(pieces()), response).catch(() => {});
  },
};

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

  test.each([
    ["lost", { kind: "drop" }],
    ["lost on the way", { kind: "status", status: 502 }],
    ["late", { kind: "status", status: 504 }],
  ] as const)("are not tried after an answer that is %s: it may be paid for", async (_, answer) => {
    await using first = await start("openai");
    await using second = await start("openai");
    await using world = await createWorld();
    first.next("POST /audio/speech", answer);
    const task = speechTask([first, second].map(({ baseUrl }) => upstreamAt(baseUrl)));
    await expect(world.upstreams.speak(task)).rejects.toMatchObject({ fault: "unknown" });
    expect(first.requests).toHaveLength(1);
    expect(second.requests).toEqual([]);
  });

  test("are tried in order where one denies its key, has no money left or says that it broke off", async () => {
    await using first = await start("openai");
    await using second = await start("openai");
    await using world = await createWorld();
    for (const answer of [
      { kind: "status", status: 401 },
      { kind: "status", status: 429, code: "insufficient_quota" },
      { kind: "status", status: 500 },
    ] as const) {
      first.next("POST /audio/speech", answer);
      const task = speechTask([first, second].map(({ baseUrl }) => upstreamAt(baseUrl)));
      await expect(world.upstreams.speak(task)).resolves.toMatchObject({ durationSeconds: 3.004 });
    }
    expect([first.requests.length, second.requests.length]).toEqual([3, 3]);
    const keyless = upstreamAt(first.baseUrl, "OPENAI", { apiKeyEnv: "NOT_SET" });
    await world.upstreams.speak(speechTask([keyless, upstreamAt(second.baseUrl)]));
    expect([first.requests.length, second.requests.length]).toEqual([3, 4]);
  });

  test("name their error in the log by a known code alone", async () => {
    await using upstream = await start("openai");
    await using world = await createWorld();
    const task = speechTask([upstreamAt(upstream.baseUrl)]);
    // An upstream's own words may repeat the request.
    for (const code of ["Hello_there.", "model_not_found"]) {
      upstream.next("POST /audio/speech", { kind: "status", status: 400, code });
      await expect(world.upstreams.speak(task)).rejects.toMatchObject({ fault: "failed" });
    }
    const log = world.logLines.join("\n");
    expect(log).toContain('"code":"other"');
    expect(log).toContain('"code":"model_not_found"');
    expect(log).not.toContain("Hello");
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
        // Long enough for the next request to begin meanwhile, if it did not wait.
        await delay(30);
        running--;
        response.end(sound);
      },
    });
    const two = { ...upstreamAt(upstream.baseUrl), maxConcurrent: 2 };
    // One account leaves a place to the others.
    const speak = (accountId: string) => world.upstreams.speak(speechTask([two], { accountId }));
    await Promise.all(["acc_1", "acc_2", "acc_1", "acc_2", "acc_1", "acc_2"].map(speak));
    expect(mostAtOnce).toBe(2);
  });
});
