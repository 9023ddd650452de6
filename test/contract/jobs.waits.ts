import {
  type GenerationTask,
  NotTakenError,
  type Refusal,
} from "../../services/upstreams/media/port.ts";
import { until } from "../support/until.ts";
import type { OpenedJobsWorld } from "./jobs.opening.ts";
import { succeed } from "./jobs.upstream.ts";
import type { JobsWorld } from "./jobs.world.ts";

/** Two upstreams without idempotency keys, and one with them. No server is at their addresses, because the test plays the upstream. */
export const catalog = `upstreams:
  one: { protocol: openai, baseUrl: "http://127.0.0.1:9/v1" }
  two: { protocol: openai, baseUrl: "http://127.0.0.1:9/v1" }
  peer: { protocol: genmesh, baseUrl: "http://127.0.0.1:9/v1" }
models:
  - { id: image-1, kind: image, upstream: one, creditPrice: 5, sizes: [64x64], maxConcurrent: 1 }
  - { id: image-2, kind: image, upstream: two, creditPrice: 5, sizes: [64x64] }
  - { id: both, kind: image, upstream: one, fallbackUpstreams: [two], creditPrice: 5, sizes: [64x64] }
  - { id: once, kind: image, upstream: one, fallbackUpstreams: [two], creditPrice: 5, sizes: [64x64], lostAnswer: fail }
  - { id: peers, kind: image, upstream: peer, fallbackUpstreams: [two], creditPrice: 5, sizes: [64x64] }
`;

interface TurnedAway {
  refusal?: Refusal;
  retryAfterMs?: number;
  isCertain?: boolean;
}

/** Milliseconds that an upstream asks for where the test must see the job wait. No slow look misses that. */
export const longMs = 60_000;

/** An upstream that refuses the job after its request was sent. */
export const turnAway =
  ({ refusal = "too_many_requests", retryAfterMs, isCertain = true }: TurnedAway = {}) =>
  async (task: GenerationTask): Promise<never> => {
    await task.sending();
    throw new NotTakenError(refusal, { retryAfterMs, isCertain, cause: undefined });
  };

/** The waiting job, the time until which it waits, and the length of its pause by the event that began it. */
export const parked = (world: JobsWorld, jobId: string, times: number) =>
  until(`${times} refusals`, async () => {
    const job = await world.store.find(jobId);
    const at = job?.wait?.until;
    if (job?.state !== "queued" || job.wait?.times !== times || at === undefined) return undefined;
    return { job, until: at, pauseMs: at - (job.events.at(-1)?.at ?? 0) };
  });

/** The names of the called upstreams, in order. */
export const asked = (world: OpenedJobsWorld) =>
  world.upstream.tasks.map(({ upstream }) => upstream.name);

/** Sets the behaviour of each upstream by its name. */
export const behave = (world: OpenedJobsWorld, does: Record<string, Refusal | "takes it">) =>
  world.upstream.behave(async (task) => {
    const how = does[task.upstream.name] ?? "takes it";
    if (how !== "takes it") return turnAway({ refusal: how, retryAfterMs: longMs })(task);
    await task.sending();
    return succeed(task);
  });
