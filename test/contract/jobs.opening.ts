import { afterEach } from "vitest";
import { type JumpClock, jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { type ScriptedUpstream, scriptedUpstream } from "./jobs.upstream.ts";
import type { createJobsWorld, JobsWorld, JobsWorldOptions } from "./jobs.world.ts";

/** A world with a scripted upstream and a clock that the test moves. */
export interface OpenedJobsWorld extends JobsWorld {
  clock: JumpClock;
  upstream: ScriptedUpstream;
}

/** Opens the worlds of a suite. They end after each test. Alice has 10,000 credits in each new one. */
export function worldsOf(
  createWorld: typeof createJobsWorld,
): (options?: JobsWorldOptions) => Promise<OpenedJobsWorld> {
  const worlds: JobsWorld[] = [];
  afterEach(async () => {
    for (const one of worlds.splice(0).reverse()) await one[Symbol.asyncDispose]();
  });
  return async (options = {}) => {
    const clock = (options.clock as JumpClock | undefined) ?? jumpClock();
    const upstream = (options.upstream as ScriptedUpstream | undefined) ?? scriptedUpstream();
    const world = await createWorld({ ...options, upstream, clock });
    worlds.push(world);
    if (!options.folder) await world.fund(10_000n);
    return { ...world, clock, upstream };
  };
}

/** Waits until at least `attempts` attempts of a job were lost. Each has begun and given its job back. */
export function attemptsLost({ store }: JobsWorld, jobId: string, attempts: number) {
  return until(`${attempts} lost attempts`, async () => {
    const { events = [] } = (await store.find(jobId)) ?? {};
    // Before them are the events of its creation and its queueing.
    return events.length >= 2 + 2 * attempts;
  });
}
