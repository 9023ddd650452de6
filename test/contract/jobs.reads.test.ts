import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Job, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { lineLookMs, maxLookPauseMs, watchPollMs } from "../../services/media/limits.ts";
import { chanceOf } from "../support/chance.ts";
import type { JumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { query } from "./jobs.shapes.ts";
import { alice, as, createJobsWorld, type JobsWorld } from "./jobs.world.ts";

/** A store whose reads take as long as the test wants. Their answers show the state of their beginning. */
function slowReads(wait: () => Promise<unknown>, waitForLine = wait) {
  const begun = { jobs: 0, marks: 0, lines: 0 };
  const slowly = async <T>(read: Promise<T>, waits = wait): Promise<T> => {
    const found = await read;
    await waits();
    return found;
  };
  return {
    /** The number of reads of a job, of looks at marks, and of readings of a line, that have begun. */
    begun,
    beforeStore: (store: JobStore): JobStore => ({
      ...store,
      findWithoutText(jobId) {
        begun.jobs++;
        return slowly(store.findWithoutText(jobId));
      },
      marks(jobIds) {
        begun.marks++;
        return slowly(store.marks(jobIds));
      },
      line(kind) {
        begun.lines++;
        return slowly(store.line(kind), waitForLine);
      },
      list: (asked) => slowly(store.list(asked)),
    }),
  };
}

/** A gate for reads. */
function gate() {
  let open = Promise.withResolvers<void>();
  open.resolve();
  return {
    passed: () => open.promise,
    close() {
      open = Promise.withResolvers();
    },
    open: () => open.resolve(),
  };
}

/** Two replicas of media without a worker, on one store. The reads of the second are slow, and those of a line may differ. */
async function twoReplicas(wait: () => Promise<unknown>, waitForLine = wait) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-reads-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const slow = slowReads(wait, waitForLine);
  const first = stack.use(await createJobsWorld({ folder, workerCount: 0 }));
  const second = stack.use(
    await createJobsWorld({ folder, workerCount: 0, beforeStore: slow.beforeStore }),
  );
  await first.fund(1_000n);
  const owned = stack.move();
  return { first, second, slow, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The first message of a watch that begins now. */
async function firstWord({ peers }: JobsWorld, jobId: string): Promise<Job> {
  for await (const { job } of peers.media.watchJob({ jobId }, as(alice))) if (job) return job;
  throw new Error("a watch that says nothing");
}

/** A worker in another process claims the one job. Then a caller sees that. */
async function runs(world: JobsWorld, jobId: string): Promise<void> {
  expect(await world.store.claim(query({ now: Date.now() }))).toMatchObject({ jobId });
  expect((await world.get(jobId)).status).toBe(JobStatus.RUNNING);
}

/** Long enough for a request to reach the store. */
async function arrives(): Promise<void> {
  for (let n = 0; n < 50; n++) await turn();
}

test("watches that begin while a job is read share the next reading, and are told nothing older than an answer before them", async () => {
  const reads = gate();
  await using world = await twoReplicas(reads.passed);
  const { first, second, slow } = world;
  const { jobId } = (await first.submit()).job;
  reads.close();
  const early = firstWord(second, jobId);
  await until("a reading", () => slow.begun.jobs === 1);
  await runs(first, jobId);
  const late = Array.from({ length: 5 }, () => firstWord(second, jobId));
  await arrives();
  expect(slow.begun.jobs).toBe(1);
  reads.open();
  expect((await early).status).toBe(JobStatus.QUEUED);
  for (const { status } of await Promise.all(late)) expect(status).toBe(JobStatus.RUNNING);
  expect(slow.begun.jobs).toBe(2);
});

test("a watch that begins is not told what was read for another one before", async () => {
  await using world = await twoReplicas(turn);
  const { first, second } = world;
  const { jobId } = (await first.submit()).job;
  const other = second.peers.media.watchJob({ jobId }, as(alice))[Symbol.asyncIterator]();
  expect((await other.next()).value).toMatchObject({ job: { status: JobStatus.QUEUED } });
  await runs(first, jobId);
  expect((await firstWord(second, jobId)).status).toBe(JobStatus.RUNNING);
  await other.return?.();
});

test("nor what another one's look at its mark did not see", async () => {
  const reads = gate();
  await using world = await twoReplicas(reads.passed);
  const { first, second, slow } = world;
  const { jobId } = (await first.submit()).job;
  const seen: JobStatus[] = [];
  const leave = new AbortController();
  const other = (async () => {
    const call = { ...as(alice), signal: leave.signal };
    for await (const { job } of second.peers.media.watchJob({ jobId }, call)) {
      if (job) seen.push(job.status);
    }
  })().catch(() => {});
  await until("its first word", () => seen.length > 0);
  reads.close();
  while (slow.begun.marks === 0) {
    (second.clock as JumpClock).jump(watchPollMs);
    await arrives();
  }
  await runs(first, jobId);
  const late = firstWord(second, jobId);
  await arrives();
  reads.open();
  expect((await late).status).toBe(JobStatus.RUNNING);
  await until("the other one to see it too", () => seen.at(-1) === JobStatus.RUNNING);
  leave.abort();
  await other;
});

test("a line that is read slowly is read once for all who ask, and not again for a while", async () => {
  const lines = gate();
  await using world = await twoReplicas(turn, lines.passed);
  const { first, second, slow } = world;
  const clock = second.clock as JumpClock;
  const { jobId } = (await first.submit()).job;
  const placeNow = async () => (await second.get(jobId)).queuePosition;
  lines.close();
  const early = placeNow();
  await until("a reading", () => slow.begun.lines === 1);
  clock.jump(3 * lineLookMs);
  const late = [placeNow(), placeNow()];
  await arrives();
  lines.open();
  expect(await Promise.all([early, ...late])).toEqual([1, 1, 1]);
  clock.jump(5 * lineLookMs);
  expect(await placeNow()).toBe(1);
  expect(slow.begun.lines).toBe(1);
  clock.jump(maxLookPauseMs);
  expect(await placeNow()).toBe(1);
  expect(slow.begun.lines).toBe(2);
});

/** An answer: the times of its request and of its arrival, and the state of the job. */
interface Told {
  how: string;
  askedAt: number;
  toldAt: number;
  progress: number;
}

test("whatever callers ask of two replicas, no answer is older than one that was given before its request came", async () => {
  const chance = chanceOf(33);
  await using world = await twoReplicas(() => delay(chance.int(12)));
  const { first, second } = world;
  const { jobId } = (await first.submit()).job;
  await runs(first, jobId);
  const told: Told[] = [];
  let at = 0;
  const last = 60;
  const ways: Record<string, (world: JobsWorld) => Promise<number | undefined>> = {
    get: async ({ get }) => (await get(jobId)).progress,
    list: async ({ peers }) => (await peers.media.listJobs({}, as(alice))).jobs[0]?.progress,
    watch: async (world) => (await firstWord(world, jobId)).progress,
  };
  const ask = async () => {
    for (let progress = 0; progress < last; ) {
      const [how, way] = chance.pick(Object.entries(ways));
      const askedAt = at++;
      progress = (await way(chance.pick([first, second, second]))) ?? 0;
      told.push({ how, askedAt, toldAt: at++, progress });
    }
  };
  const work = async () => {
    for (let percent = 1; percent <= last; percent++) {
      await delay(chance.int(12));
      await first.store.renew(jobId, { kind: "progress", fence: 1, percent });
    }
  };
  const leave = new AbortController();
  const followed = [first, second, second].map(({ peers }) => {
    const seen: number[] = [];
    const call = { ...as(alice), signal: leave.signal };
    const following = (async () => {
      for await (const { job } of peers.media.watchJob({ jobId }, call)) {
        if (job) seen.push(job.progress);
      }
    })().catch(() => {});
    return { seen, following };
  });
  await Promise.all([work(), ...Array.from({ length: 8 }, ask)]);
  leave.abort();
  for (const { seen, following } of followed) {
    await following;
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  }
  const older = told.filter((one) =>
    told.some((before) => before.toldAt < one.askedAt && before.progress > one.progress),
  );
  expect(older).toEqual([]);
  expect(new Set(told.map(({ how }) => how))).toEqual(new Set(Object.keys(ways)));
});
