import { afterEach } from "vitest";
import { type JumpClock, jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { type ScriptedUpstream, scriptedUpstream } from "./jobs.upstream.ts";
import type { createJobsWorld, JobsWorld, JobsWorldOptions } from "./jobs.world.ts";

/** A world with a scripted upstream and a lever on time. */
export interface OpenedJobsWorld extends JobsWorld {
  clock: JumpClock;
  upstream: ScriptedUpstream;
}

/** Gives what opens the worlds of a suite; they end after each test. Alice has 10,000 credits in each that is new. */
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

/** Waits until so many attempts of a job, or more by now, have come to nothing: each has begun, and was given back. */
export function attemptsLost({ store }: JobsWorld, jobId: string, attempts: number) {
  return until(`${attempts} lost attempts`, async () => {
    const { events = [] } = (await store.find(jobId)) ?? {};
    // Before them it was written down, and queued.
    return events.length >= 2 + 2 * attempts;
  });
}
