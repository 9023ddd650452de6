import { afterEach, describe, expect, test } from "vitest";
import { JobKind } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { GenerationTask } from "../../services/media/generate/port.ts";
import { scriptedUpstream, succeed } from "./jobs.upstream.ts";
import {
  alice,
  bob,
  createJobsWorld,
  image,
  type JobsWorld,
  type JobsWorldOptions,
  music,
} from "./jobs.world.ts";

const worlds: JobsWorld[] = [];
afterEach(async () => {
  for (const one of worlds.splice(0)) await one[Symbol.asyncDispose]();
});

async function open(options: JobsWorldOptions = {}) {
  const upstream = scriptedUpstream();
  const world = await createJobsWorld({ upstream, ...options });
  worlds.push(world);
  await world.fund(10_000n);
  return { ...world, upstream };
}

describe("how many run at once", () => {
  /** Counts what runs at the same time, in all and by something. */
  function counting(by: (task: GenerationTask) => string) {
    const now = new Map<string, number>();
    const most = new Map<string, number>();
    return {
      most,
      async behave(task: GenerationTask) {
        const name = by(task);
        now.set(name, (now.get(name) ?? 0) + 1);
        most.set(name, Math.max(most.get(name) ?? 0, now.get(name) ?? 0));
        for (let turn = 0; turn < 5; turn++) await new Promise((go) => setImmediate(go));
        const outputs = await succeed(task);
        now.set(name, (now.get(name) ?? 0) - 1);
        return outputs;
      },
    };
  }
  const twelve = async (
    world: JobsWorld,
    body: (i: number) => object,
    kind: (i: number) => JobKind,
  ) => {
    const jobs = await Promise.all(
      Array.from({ length: 12 }, (_, i) => world.submit(body(i), { kind: kind(i) })),
    );
    for (const { job } of jobs) await world.ended(job.jobId);
  };

  test("of a kind, in one process", async () => {
    const count = counting(() => "all");
    const world = await open({ workers: { image: 3 } });
    world.upstream.behave(count.behave);
    await twelve(
      world,
      () => image(),
      () => JobKind.IMAGE,
    );
    expect(count.most.get("all")).toBe(3);
  });

  test("at an upstream, over all kinds", async () => {
    const catalog = `upstreams: { one: { protocol: openai, baseUrl: "http://127.0.0.1:9/v1", maxConcurrent: 2 }, two: { protocol: builtin } }
models:
  - { id: image-1, kind: image, upstream: one, creditPrice: 5 }
  - { id: image-2, kind: image, upstream: two, creditPrice: 5 }
  - { id: music-1, kind: music, upstream: two, creditPrice: 20 }
  - { id: video-1, kind: video, upstream: one, availableAspectRatios: [auto], videoOptions: [{ durationSeconds: 6, resolution: 480p, modes: [t2v], credits: 1 }] }
`;
    const count = counting(({ upstream }) => upstream.name);
    const world = await open({ catalog, workers: { image: 4, video: 4, music: 4 } });
    world.upstream.behave(count.behave);
    const bodies = [
      image(),
      image({ model: "image-2" }),
      music(),
      { model: "video-1", prompt: "waves" },
    ];
    const kinds = [JobKind.IMAGE, JobKind.IMAGE, JobKind.MUSIC, JobKind.VIDEO];
    await twelve(
      world,
      (i) => bodies[i % 4] ?? {},
      (i) => kinds[i % 4] ?? JobKind.IMAGE,
    );
    expect(count.most.get("one")).toBe(2);
    expect(count.most.get("two")).toBeGreaterThan(2);
  });

  test("of a model, over all workers", async () => {
    const catalog = `upstreams: { one: { protocol: builtin } }
models:
  - { id: image-1, kind: image, upstream: one, creditPrice: 5, maxConcurrent: 2 }
  - { id: image-2, kind: image, upstream: one, creditPrice: 5 }
`;
    const count = counting(({ upstreamModel }) => upstreamModel);
    const world = await open({ catalog, workers: { image: 4 }, workerCount: 3 });
    world.upstream.behave(count.behave);
    await twelve(
      world,
      (i) => image({ model: `image-${1 + (i % 2)}` }),
      () => JobKind.IMAGE,
    );
    expect(count.most.get("image-1")).toBe(2);
    expect(count.most.get("image-2")).toBeGreaterThan(2);
  });
});

test("two workers share the jobs, each done once", async () => {
  const world = await open({ workerCount: 2 });
  await world.fund(1_000n, bob);
  const jobs = await Promise.all(
    Array.from({ length: 30 }, (_, i) => world.submit(image(), { principal: i % 2 ? alice : bob })),
  );
  for (const [i, { job }] of jobs.entries()) await world.ended(job.jobId, i % 2 ? alice : bob);
  const ids = world.upstream.tasks.map(({ jobId }) => jobId);
  expect(ids).toHaveLength(30);
  expect(new Set(ids).size).toBe(30);
});
