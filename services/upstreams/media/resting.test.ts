import { expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  bytesAnswer,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import type { Behaviour } from "../../../test/support/scripted-upstream.ts";
import { createPools } from "../pools/index.ts";
import type { GenerationTask } from "./port.ts";
import { sampleMp3, sampleMp4, samplePng } from "./samples.fixture.ts";
import { createWorld, imageRequest, speechTask, upstreamAt } from "./world.fixture.ts";

/** Upstreams of media whose rests a test ends. */
async function start() {
  const clock = manualClock();
  const world = await createWorld({ pools: createPools({ clock, metrics: createMetrics() }) });
  const media = { images: [], video: sampleMp4(), sound: sampleMp3(3) };
  const server = await startScriptedMediaUpstream("openai", media);
  const upstreams = ["a", "b"].map((name) => ({ ...upstreamAt(server.baseUrl), name }));
  const [a] = upstreams;
  if (!a) throw new Error("there are two upstreams");
  return {
    ...{ clock, world, server, upstreams },
    /** The upstream of a job that is at `at`. */
    placeFrom: (at = 0) => world.upstreams.placeToBegin(upstreams, "up-model", at),
    /** A job at the first upstream. */
    async begin(behaviour: Behaviour, asked: Partial<GenerationTask> = {}) {
      server.next("POST /images/generations", behaviour);
      const task = { upstream: a, request: imageRequest, upstreamModel: "up-model", ...asked };
      await world.upstreams.generate(world.task(task).task);
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const status = (code: number, more: object = {}): Behaviour => ({
  ...{ kind: "status", status: code },
  ...more,
});

test.each<[string, Behaviour, number, number]>([
  ["429", status(429, { headers: { "retry-after": "7" } }), 1, 7],
  ["401", status(401), 1, 60],
  ["402", status(402), 1, 60],
  ["404", status(404), 1, 60],
  ["503", status(503), 3, 5],
  ["a lost connection", { kind: "drop" }, 3, 5],
])("an upstream gets no new job after %s", async (_, behaviour, times, seconds) => {
  await using pool = await start();
  for (let at = 0; at < times; at++) {
    expect(pool.placeFrom()).toBe(0);
    await pool.begin(behaviour).catch(() => {});
  }
  expect([pool.placeFrom(0), pool.placeFrom(1)]).toEqual([1, 1]);
  await pool.clock.advance(seconds * 1_000 - 1);
  expect(pool.placeFrom()).toBe(1);
  await pool.clock.advance(1);
  expect(pool.placeFrom()).toBe(0);
});

test("an upstream that refuses the content of jobs gets the next one", async () => {
  await using pool = await start();
  const refusal = status(400, { code: "content_policy_violation" });
  for (let at = 0; at < 12; at++) await pool.begin(refusal).catch(() => {});
  expect(pool.placeFrom()).toBe(0);
});

test("a store of ours that is away says nothing about the upstream", async () => {
  await using pool = await start();
  const png = await samplePng();
  const answer = JSON.stringify({ data: [{ b64_json: png.toString("base64") }] });
  const store = () => Promise.reject(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE));
  const body = bytesAnswer(Buffer.from(answer), "application/json");
  for (let at = 0; at < 12; at++) {
    await expect(pool.begin(body, { store })).rejects.toThrow("could not be stored");
  }
  expect(pool.placeFrom()).toBe(0);
});

test("speech is asked for at an upstream that does not rest", async () => {
  await using pool = await start();
  const { upstreams, world, server } = pool;
  const tries: unknown[] = [];
  const tried = (...one: unknown[]) => void tries.push(one);
  const speak = () => world.upstreams.speak(speechTask(upstreams, { tried }));
  server.next("POST /audio/speech", status(401));
  await speak();
  expect(server.requests).toHaveLength(2);
  await speak();
  expect(server.requests).toHaveLength(3);
  await pool.clock.advance(60_000);
  server.next("POST /audio/speech", status(402));
  await speak();
  expect(server.requests).toHaveLength(5);
  expect(tries).toEqual([
    ["a", { kind: "denied", status: 401 }],
    ["b"],
    ["b"],
    ["a", { kind: "account_empty", status: 402 }],
    ["b"],
  ]);
});
