import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { untilAborted } from "#kit/base/abort.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { claimPollMs } from "../../services/media/limits.ts";
import type { GenerationTask } from "../../services/upstreams/media/port.ts";
import { heldPauses, jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { worldsOf } from "./jobs.opening.ts";
import { gated, succeed } from "./jobs.upstream.ts";
import { alice, bob, type createJobsWorld, image, type JobsWorld, music } from "./jobs.world.ts";

/** Loses every wake-up. */
const forgetfulQueue: WakeQueue = {
  publish: async () => {},
  subscribe: () => ({
    next: (signal) => untilAborted(new Promise<never>(() => {}), signal),
    [Symbol.asyncDispose]: async () => {},
  }),
  [Symbol.asyncDispose]: async () => {},
};

/** The rules for the number of running jobs, on any database. */
export function jobCapacityContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  describe("how many run at once", () => {
    /** Counts simultaneous jobs by a property. All of them continue when the test says so. */
    function counting(by: (task: GenerationTask) => string) {
      const now = new Map<string, number>();
      const most = new Map<string, number>();
      const gate = Promise.withResolvers<void>();
      return {
        most,
        go: gate.resolve,
        async behave(task: GenerationTask) {
          const name = by(task);
          now.set(name, (now.get(name) ?? 0) + 1);
          most.set(name, Math.max(most.get(name) ?? 0, now.get(name) ?? 0));
          await gate.promise;
          const outputs = await succeed(task);
          now.set(name, (now.get(name) ?? 0) - 1);
          return outputs;
        },
      };
    }
    /** Twelve jobs, which continue when the wanted number of them runs. */
    const twelve = async (
      world: JobsWorld,
      count: ReturnType<typeof counting>,
      wanted: Record<string, number>,
      body: (i: number) => object,
      kind: (i: number) => JobKind = () => JobKind.IMAGE,
    ) => {
      const jobs = await Promise.all(
        Array.from({ length: 12 }, (_, i) => world.submit(body(i), { kind: kind(i) })),
      );
      const isFull = () =>
        Object.entries(wanted).every(([name, least]) => (count.most.get(name) ?? 0) >= least);
      await until("as many to run", isFull, { withinMs: 60_000 });
      count.go();
      for (const { job } of jobs) await world.ended(job.jobId);
    };

    test("of a kind, in one process", async () => {
      const count = counting(() => "all");
      const world = await open({ workers: { image: 3 } });
      world.upstream.behave(count.behave);
      await twelve(world, count, { all: 3 }, () => image());
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
        count,
        { one: 2, two: 3 },
        (i) => bodies[i % 4] ?? {},
        (i) => kinds[i % 4] ?? JobKind.IMAGE,
      );
      expect(count.most.get("one")).toBe(2);
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
      const wanted = { "image-1": 2, "image-2": 3 };
      await twelve(world, count, wanted, (i) => image({ model: `image-${1 + (i % 2)}` }));
      expect(count.most.get("image-1")).toBe(2);
    });
  });

  describe("places of an upstream that one account has all of", () => {
    const at = (
      places: number,
    ) => `upstreams: { one: { protocol: openai, baseUrl: "http://127.0.0.1:9/v1", maxConcurrent: ${places} } }
models:
  - { id: image-1, kind: image, upstream: one, creditPrice: 5 }
  - { id: video-1, kind: video, upstream: one, availableAspectRatios: [auto], videoOptions: [{ durationSeconds: 6, resolution: 480p, modes: [t2v], credits: 1 }] }
`;
    const ofKinds: [JobKind, object][] = [
      [JobKind.IMAGE, image()],
      [JobKind.VIDEO, { model: "video-1", prompt: "waves" }],
    ];
    const gate = () => {
      const open: (() => void)[] = [];
      return {
        next: () => open.shift()?.(),
        all: () => open.splice(0).forEach((one) => void one()),
        async behave(task: GenerationTask) {
          await new Promise<void>((resolve) => open.push(resolve));
          return succeed(task);
        },
      };
    };

    test.each(ofKinds)(
      "are its own alone; the next is another account's, of kind %i",
      async (kind, body) => {
        const held = gate();
        const world = await open({ catalog: at(4), workers: { image: 4, video: 4 } });
        await world.fund(1_000n, bob);
        world.upstream.behave(held.behave);
        const accounts = () => world.upstream.tasks.map(({ accountId }) => accountId);
        for (const [own, ownBody] of [...ofKinds, ...ofKinds, ...ofKinds, ...ofKinds]) {
          await world.submit(ownBody, { kind: own });
        }
        // There is only one account, so no place is kept free.
        await until("all places to be taken", () => world.upstream.tasks.length === 4);
        const { job } = await world.submit(body, { kind, principal: bob });
        const isWoken = async () => ((await world.store.find(job.jobId))?.publications ?? 0) >= 1;
        await until("its wake-up", isWoken);
        held.next();
        await until("the next job", () => world.upstream.tasks.length === 5);
        expect(accounts()).toEqual([...Array(4).fill(alice.accountId), bob.accountId]);
        world.upstream.behave(succeed);
        held.all();
        await world.ended(job.jobId, bob);
      },
    );
  });

  test("a place that becomes free while a claim finds none is the next job's at once", async () => {
    const polls = heldPauses(jumpClock(), claimPollMs);
    const gate = Promise.withResolvers<void>();
    let isArmed = false;
    const world = await open({
      clock: polls.clock,
      workers: { image: 1 },
      beforeStore: (store) => ({
        ...store,
        async claim(query) {
          const job = await store.claim(query);
          if (job || query.kind !== "image" || !isArmed) return job;
          isArmed = false;
          // The search has found the place taken. Before its answer, the job there ends.
          gate.resolve();
          await world.ended(first.job.jobId);
          for (let turns = 0; turns < 20; turns++) await turn();
          return undefined;
        },
      }),
      queue: forgetfulQueue,
    });
    world.upstream.behave(gated(gate.promise));
    const first = await world.submit();
    const second = await world.submit();
    isArmed = true;
    await polls.turn();
    expect((await world.ended(second.job.jobId)).status).toBe(JobStatus.COMPLETED);
  });

  test("two workers share the jobs, each done once", async () => {
    const world = await open({ workerCount: 2 });
    await world.fund(1_000n, bob);
    const jobs = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        world.submit(image(), { principal: i % 2 ? alice : bob }),
      ),
    );
    for (const [i, { job }] of jobs.entries()) await world.ended(job.jobId, i % 2 ? alice : bob);
    const ids = world.upstream.tasks.map(({ jobId }) => jobId);
    expect(ids).toHaveLength(30);
    expect(new Set(ids).size).toBe(30);
  });
}
