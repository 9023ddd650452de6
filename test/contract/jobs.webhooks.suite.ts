import { beforeEach, expect, test } from "vitest";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { maxQueuedMs } from "../../services/media/limits.ts";
import { must, now, queuedIn } from "./jobs.shapes.ts";

/** The rules for every store about jobs whose ends are sent by webhooks. It is a part of the jobs' suite. */
export function jobWebhooksContract(clients: () => [JobStore, JobStore]): void {
  let store: JobStore;
  let second: JobStore;
  beforeEach(() => {
    [store, second] = clients();
  });

  test("a job that has ended is found until its webhook is announced, and kept meanwhile", async () => {
    const webhook = { url: "https://example.com/é?a=b", baseUrl: "", isAnnounced: false };
    const fail = { kind: "fail", charged: 0n, expiresAt: now + 5_000, now } as const;
    await queuedIn(store, "job_a", { webhook });
    await queuedIn(store, "job_none");
    for (const jobId of ["job_a", "job_none"]) {
      await must(store, jobId, { kind: "expire", now: now + maxQueuedMs });
    }
    expect((await second.find("job_a"))?.webhook).toEqual(webhook);
    expect(await store.unannounced(10)).toEqual([]);
    expect(await store.apply("job_a", { kind: "announced" })).toBeUndefined();
    const ended = await must(store, "job_a", fail);
    await must(store, "job_none", fail);
    expect(await second.unannounced(10)).toEqual([ended]);
    expect(await store.apply("job_none", { kind: "announced" })).toBeUndefined();
    const told = await must(store, "job_a", { kind: "announced" });
    expect(told.webhook).toEqual({ ...webhook, isAnnounced: true });
    expect(await second.find("job_a")).toEqual(told);
    expect(await second.unannounced(10)).toEqual([]);
    expect(await store.apply("job_a", { kind: "announced" })).toBeUndefined();
  });

  test("a job that has ended is deleted once its end is announced, not before", async () => {
    const webhook = { url: "https://example.com/hook", baseUrl: "", isAnnounced: false };
    await queuedIn(store, "job_a", { webhook });
    await must(store, "job_a", { kind: "cancel", now });
    const ended = await must(store, "job_a", {
      kind: "fail",
      charged: 0n,
      expiresAt: now + 5,
      now,
    });
    expect(await store.apply("job_a", { kind: "delete", now })).toBeUndefined();
    expect(await second.unannounced(10)).toEqual([ended]);
    await must(second, "job_a", { kind: "announced" });
    const deleted = await must(store, "job_a", { kind: "delete", now });
    expect(deleted).toMatchObject({ state: "deleted", webhook: { isAnnounced: true } });
    expect(await second.unannounced(10)).toEqual([]);
  });
}
