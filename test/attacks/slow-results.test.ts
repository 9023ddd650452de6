import type { ServerResponse } from "node:http";
import { afterAll, expect, test } from "vitest";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import type { Caller } from "../e2e/caller.ts";
import { creditsOf, ended, submit, withMedia } from "../e2e/media-world.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import {
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";

const png = await samplePng(64, 64);
const outputs = { images: [png], video: sampleMp4(), sound: sampleMp3() };
/** An upstream whose results come slowly. */
const slow = await startScriptedMediaUpstream("openai", outputs);
const healthy = await startScriptedMediaUpstream("openai", outputs);
const world = await startWorld({
  catalog: (usual) => {
    const made = withMedia(usual, slow.baseUrl);
    const image = made.models.find(({ id }) => id === "scripted-image");
    return {
      ...made,
      upstreams: {
        ...made.upstreams,
        healthy: { ...made.upstreams.scripted, baseUrl: healthy.baseUrl },
      },
      models: [...made.models, { ...image, id: "healthy-image", upstream: "healthy" } as never],
    };
  },
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await slow[Symbol.asyncDispose]();
  await healthy[Symbol.asyncDispose]();
});
ownWorldOnly();

const picture = (model: string) => ({ model, prompt: "a boat" });
/** Six of one account and two of another. With room for the largest image each, they would fill all room. */
const drips = [6, 2];

/** Answers a head with a large length, and then sends a byte now and then. */
function drip(answer: ServerResponse, type: string, bytes: number): void {
  answer.writeHead(200, { "content-type": type, "content-length": bytes });
  answer.write(" ");
  const timer = setInterval(() => answer.write(" "), 500);
  answer.once("close", () => clearInterval(timer));
}

/** Begins them, and waits until the upstream answers each one slowly. */
async function begin(route: string, type: string, bytes: number) {
  let dripping = 0;
  slow.always(route, {
    kind: "custom",
    handle(_seen, answer) {
      dripping++;
      drip(answer, type, bytes);
    },
  });
  const jobs: { caller: Caller; job: Awaited<ReturnType<typeof submit>> }[] = [];
  for (const count of drips) {
    const caller = await world.caller({ credits: 100n });
    for (let i = 0; i < count; i++) {
      jobs.push({ caller, job: await submit(caller, "images", picture("scripted-image")) });
    }
  }
  await until("all to drip", () => dripping >= jobs.length, { withinMs: 60_000 });
  return jobs;
}

async function isServed(upstream: ScriptedMediaUpstream, imagesAs: "url" | "b64_json") {
  upstream.wording.imagesAs = imagesAs;
  const caller = await world.caller({ credits: 10n });
  const job = await submit(caller, "images", picture("healthy-image"));
  expect(await ended(caller, job)).toMatchObject({ status: "completed", creditsCharged: 1 });
}

test.each([
  ["pictures that answers name", "url", "GET /made/*", "image/png", 1_000_000],
  ["answers with pictures", "b64_json", "POST /images/generations", "application/json", 44_000_000],
] as const)(
  "%s that come slowly hold up no other upstream's, and end with their job's time",
  {
    timeout: 240_000,
  },
  async (_, imagesAs, route, type, bytes) => {
    slow.wording.imagesAs = imagesAs;
    const jobs = await begin(route, type, bytes);
    await isServed(healthy, "url");
    await isServed(healthy, "b64_json");
    for (const { caller, job } of jobs) {
      const { json } = await caller.get(`/images/generations/${job.id}`);
      expect(json).toMatchObject({ status: "running", terminal: false });
    }
    await world.later(31 * 60_000);
    for (const { caller, job } of jobs) {
      const done = await ended(caller, job);
      expect(done).toMatchObject({ status: "failed", creditsCharged: 0 });
      expect(done.error.code).toBe("upstream_timeout");
    }
    for (const caller of new Set(jobs.map((one) => one.caller))) {
      expect(await creditsOf(caller)).toMatchObject({ available: 100, reserved: 0 });
    }
    slow.always(route, undefined);
    await until("the connections to be let go", () => slow.openConnections() === 0, {
      withinMs: 60_000,
    });
  },
);
