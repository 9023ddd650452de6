import { beforeEach, describe, expect, test } from "vitest";
import type { Job } from "../../services/media/jobs/job.ts";
import type { JobCommand } from "../../services/media/jobs/lifecycle.ts";
import { markOf } from "../../services/media/jobs/marks.ts";
import type { RenewCommand } from "../../services/media/jobs/renewals.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { createJobChanges, watchJob } from "../../services/media/jobs/watch.ts";
import { sharedLookMs } from "../../services/media/limits.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { failure, must, now, output, query, queuedIn } from "./jobs.shapes.ts";

/** The rules for many watches of one store. `open` gives two clients of one empty store. */
export function watchedJobsContract(open: () => Promise<[JobStore, JobStore]>): void {
  let store: JobStore;
  let second: JobStore;
  beforeEach(async () => {
    [store, second] = await open();
  });

  describe("a mark", () => {
    test("changes with what is shown of its job, is read for many jobs at once, and is none where there is no job", async () => {
      const markIn = async () => (await second.marks(["job_none", "job_a"])).get("job_a");
      const steps: JobCommand[] = [
        { kind: "claim", owner: "w", now },
        { kind: "progress", fence: 1, percent: 40 },
        {
          ...{ kind: "wait", fence: 1, refusal: "unavailable", nextUpstream: false, sent: false },
          ...{ until: now + 9, now },
        },
        { kind: "offer", now: now + 9 },
        { kind: "claim", owner: "w", now: now + 10 },
        {
          ...{ kind: "wait", fence: 2, refusal: "unavailable", nextUpstream: true, sent: false },
          ...{ until: now, now: now + 10 },
        },
        { kind: "claim", owner: "w", now: now + 11 },
        { kind: "win", fence: 3, outputs: [output], now: now + 12 },
        { kind: "complete", charged: 1n, expiresAt: now + 99, now: now + 13 },
        { kind: "keep", until: now + 199, now: now + 14 },
        { kind: "delete", now: now + 15 },
      ];
      const job = await queuedIn(store, "job_a", { upstreams: ["a", "b"] });
      const seen = [markOf(job)];
      expect(await markIn()).toBe(seen[0]);
      for (const command of steps) {
        const mark = markOf(await must(store, "job_a", command));
        expect(await markIn(), command.kind).toBe(mark);
        seen.push(mark);
      }
      expect(new Set(seen).size).toBe(steps.length + 1);
      expect(await second.marks(["job_none"])).toEqual(new Map());
      expect(await second.marks([])).toEqual(new Map());
    });

    test("stays the same while nothing that is shown changes", async () => {
      await queuedIn(store, "job_a");
      const mark = async () => (await second.marks(["job_a"])).get("job_a");
      const quiet = async (...commands: JobCommand[]) => {
        const before = await mark();
        await must(store, "job_a", ...commands);
        expect(await mark()).toBe(before);
      };
      await quiet({ kind: "published", now }, { kind: "defer", until: now + 1 });
      await store.claim(query());
      await quiet(
        { kind: "heartbeat", fence: 1, now: now + 2 },
        { kind: "published", now },
        { kind: "sending", fence: 1 },
        { kind: "resumable", fence: 1, resumeId: "t" },
      );
    });
  });

  test("a renewal does what the same command does, and leaves what the job is to do as it was", async () => {
    const renewals: RenewCommand[] = [
      { kind: "published", now },
      { kind: "defer", until: now + 5 },
      { kind: "heartbeat", fence: 1, now: now + 6, deadline: now + 7 },
      { kind: "progress", fence: 1, percent: 7 },
    ];
    for (const jobId of ["job_a", "job_b"]) {
      await queuedIn(store, jobId, { account: jobId });
      await store.claim(query());
    }
    const plain = ({ jobId: _, accountId: __, ...job }: Job) => job;
    for (const command of renewals) {
      const renewed = await second.renew("job_a", command);
      const applied = await must(store, "job_b", command);
      const found = await store.find("job_a");
      expect(found && plain(found)).toEqual(plain(applied));
      expect(renewed).toEqual({ ...found, spec: undefined });
    }
    expect(await store.renew("job_a", { kind: "progress", fence: 1, percent: 7 })).toBeUndefined();
    expect(await store.renew("job_a", { kind: "heartbeat", fence: 2, now })).toBeUndefined();
    expect(await store.renew("job_a", { kind: "beat", now })).toBeUndefined();
    expect(await store.renew("job_none", { kind: "defer", until: now })).toBeUndefined();
  });

  test("watches of many jobs read none of them between changes, and ask for all at one look", {
    timeout: 240_000,
  }, async () => {
    const clock = jumpClock();
    const changes = createJobChanges();
    const asked = { find: [] as string[], marks: [] as number[] };
    const counted = {
      findWithoutText(jobId: string) {
        asked.find.push(jobId);
        return store.findWithoutText(jobId);
      },
      marks(jobIds: readonly string[]) {
        asked.marks.push(jobIds.length);
        return store.marks(jobIds);
      },
    };
    const ids = Array.from({ length: 20 }, (_, at) => `job_${at}`);
    for (const jobId of ids) await queuedIn(store, jobId);
    const stop = new AbortController();
    const told = new Map<string, number[]>(ids.map((jobId) => [jobId, []]));
    const over = new Set<string>();
    const watch = async (jobId: string) => {
      const context = {
        ...{ clock, changes, signal: stop.signal },
        places: { of: async () => undefined },
        find: (isFirst: boolean) =>
          changes.look(jobId, { isFirst, steadyMs: clock.steady() }, counted),
      };
      for await (const job of watchJob(jobId, context)) {
        if (job) told.get(jobId)?.push(job.progress);
      }
      over.add(jobId);
    };
    const watching = Promise.all(ids.map(watch));
    await until("the first word of each", () => [...told.values()].every((all) => all.length > 0));
    expect(asked.find.toSorted()).toEqual(ids.toSorted());

    asked.find.length = 0;
    const beganMs = performance.now();
    await until("three looks", () => asked.marks.length >= 3);
    const looks = (performance.now() - beganMs) / sharedLookMs + 1;
    expect(asked.find).toEqual([]);
    expect(asked.marks.length).toBeLessThanOrEqual(looks);
    expect(new Set(asked.marks)).toEqual(new Set([ids.length]));

    // Another process changes one of them. That job is read, and no other.
    await second.claim({ ...query(), now: now + 1 });
    const claimed = (
      await second.list({
        ...{ of: "all", states: ["running"], kind: undefined, after: undefined, limit: 9 },
      } as const)
    )[0]?.jobId as string;
    await until("the change", () => told.get(claimed)?.length === 2, { withinMs: 60_000 });
    expect(asked.find).toEqual([claimed]);
    // This process changes it. Heartbeats are not sent to watches, progress is sent at once.
    const own = changes.observed(store);
    await own.renew(claimed, { kind: "heartbeat", fence: 1, now: now + 2 });
    expect(asked.find).toEqual([claimed]);
    await own.renew(claimed, { kind: "progress", fence: 1, percent: 30 });
    await until("the progress", () => told.get(claimed)?.at(-1) === 30, { withinMs: 60_000 });
    await own.apply(claimed, { kind: "lose", fence: 1, failure, now: now + 3 });
    await own.apply(claimed, { kind: "fail", charged: 0n, expiresAt: undefined, now: now + 4 });
    await until("its end", () => over.has(claimed), { withinMs: 60_000 });
    stop.abort();
    await watching;
    expect(asked.find.every((jobId) => jobId === claimed)).toBe(true);
  });
}
