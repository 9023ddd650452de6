import { pino } from "pino";
import { createMetrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createJobEvents } from "../../services/media/events.ts";
import { noFailPoints } from "../../services/media/fail-points.ts";
import { storageIdOf } from "../../services/media/files/file.ts";
import { type Job, wasCancelled } from "../../services/media/jobs/job.ts";
import { createRetention, outputsOwner } from "../../services/media/jobs/outputs.ts";
import { minCollectAgeMs } from "../../services/media/limits.ts";
import {
  type Check,
  checkAccount,
  gatherer,
  hasEnded,
  jobsOf,
  type LawStores,
  openHolds,
} from "../support/laws.ts";
import type { Received } from "../support/webhook-receiver.ts";
import type { Said } from "./jobs.child.ts";
import { readAsked } from "./jobs.upstream.ts";

/** What a run left behind. */
export interface Remains {
  stores: LawStores;
  /** Everybody who submits in the round that is examined. */
  accounts: readonly string[];
  /** Everybody who submitted in the run. */
  everybody: readonly string[];
  /** Where its upstream wrote down what it was asked. */
  folder: string;
  clock: Clock;
  /** Everything that its processes said in the round. */
  said: readonly Said[];
  /** Jobs may be gone: their time was short. */
  forgets: boolean;
  /** What its jobs' webhooks brought. */
  received: readonly Received[];
}

/**
 * What there is left to do, a line each. Reads the stores beside the processes that use them, and so in the order in which
 * work passes from one to the next: what leaves a store that was read already is found in the one behind it.
 */
export async function whatIsLeft(
  stores: LawStores,
  accounts: readonly string[],
): Promise<readonly string[]> {
  const left: string[] = [];
  for (const accountId of accounts) {
    for (const job of await jobsOf(stores, accountId)) {
      const { jobId, state } = job;
      if (!hasEnded(job)) left.push(`${jobId} is ${state}`);
      else if (job.pinsHeld && state !== "rejected") left.push(`${jobId} (${state}) has pins`);
      if (state === "deleted" && job.outputs.length > 0) left.push(`${jobId} has outputs`);
    }
    for (const hold of await openHolds(stores, accountId)) left.push(`${hold} is open`);
  }
  for (const { jobId } of await stores.jobs.unannounced(10)) left.push(`${jobId} is not announced`);
  for (const accountId of accounts) {
    const webhooks = await stores.webhooks.list({ accountId, after: undefined, limit: 1_000 });
    for (const { webhookId, state, dueAt } of webhooks) {
      if (dueAt !== undefined) left.push(`${webhookId} is ${state}`);
    }
  }
  // Files on their way in or out, and the bytes that are set aside for them, whenever they are due.
  for (const { fileId, state } of await stores.files.due(Number.MAX_SAFE_INTEGER, 10)) {
    left.push(`${fileId} is ${state}`);
  }
  return left;
}

/** Reads the stores, and gives every breach of the invariants C1 to C12 of jobs and money in words. */
export async function findBreaches(remains: Remains): Promise<string[]> {
  const { stores, accounts, everybody, forgets } = remains;
  const { breaches, check } = gatherer();
  const jobs: Job[] = [];
  for (const accountId of accounts) {
    jobs.push(...(await checkAccount(stores, { accountId, forgets }, check)));
  }
  for await (const { ref } of stores.ledger.snapshots(undefined)) {
    check("C1", everybody.includes(ref.accountId), { unknown: ref });
  }
  checkAnswers(jobs, remains, check);
  checkUpstream(remains, check);
  checkWebhooks(jobs, remains, check);
  await checkOrphans(remains, check);
  return breaches;
}

/** C6, C7 and C11: what callers were told is so. */
function checkAnswers(jobs: readonly Job[], { said, forgets }: Remains, check: Check): void {
  const accepted = said.filter((one) => one.kind === "accepted");
  for (const [key, list] of Map.groupBy(accepted, (one) => one.key)) {
    const ids = new Set(list.map(({ jobId }) => jobId));
    check("C6", forgets || ids.size === 1, { key, ids: [...ids] });
    check("C6", !key.startsWith("poor"), { key });
  }
  for (const { jobId, key } of accepted) {
    const job = jobs.find((one) => one.jobId === jobId);
    check("C7", forgets || (job !== undefined && hasEnded(job)), { key, jobId });
    if (job) check("C7", job.state === endOf(key), { key, state: job.state });
    if (job && key.startsWith("endless")) check("C7", wasCancelled(job), { key, job });
  }
  for (const one of said) {
    if (one.kind !== "cancelled" && one.kind !== "deleted") continue;
    const job = jobs.find(({ jobId }) => jobId === one.jobId);
    check("cancelled", one.kind !== "cancelled" || !job || wasCancelled(job), { one, job });
    const isGone = !job || (job.state === "deleted" && job.outputs.length === 0);
    check("deleted", one.kind !== "deleted" || isGone, { one, job });
  }
  for (const one of said) check("C11", one.kind !== "leak", one);
}

/** Every end of an accepted job was told at least once, and always in the same words. */
function checkWebhooks(jobs: readonly Job[], { said, received }: Remains, check: Check): void {
  for (const one of said) {
    if (one.kind !== "accepted") continue;
    const { jobId, key } = one;
    const told = received.filter(({ id }) => id === jobId.replace("job_", "evt_"));
    check("told", told.length > 0, { key, jobId });
    check("told alike", new Set(told.map(({ body }) => body)).size <= 1, { key, jobId });
    const type = typeOf(
      key,
      jobs.find((job) => job.jobId === jobId),
    );
    for (const { body } of told) check("told right", JSON.parse(body).type === type, { key, body });
  }
}

/** What is told of a submission's job; of one that is deleted or forgotten, what it must have come to. */
function typeOf(key: string, job: Job | undefined): string {
  if (job && wasCancelled(job)) return "job.cancelled";
  const state = job && job.state !== "deleted" ? job.state : endOf(key);
  return state === "failed" ? "job.failed" : "job.completed";
}

/** How a submission's job ends. */
function endOf(key: string): Job["state"] {
  if (key.startsWith("deleted")) return "deleted";
  return key.startsWith("bad") || key.startsWith("endless") ? "failed" : "completed";
}

/** A task that an upstream has named is never begun a second time, and every attempt has the job's own key. */
function checkUpstream({ folder }: Remains, check: Check): void {
  const asked = readAsked(folder);
  for (const [jobId, list] of Map.groupBy(asked, (one) => one.jobId)) {
    const saved = list.findIndex(({ what }) => what === "saved");
    const again = list.slice(saved + 1).some(({ what }) => what === "create");
    check("one upstream task", saved < 0 || !again, { jobId, list });
    check(
      "one key",
      list.every(({ idempotencyKey }) => idempotencyKey === jobId),
      { jobId },
    );
    check("attempts", list.filter(({ what }) => what === "make" || what === "create").length <= 4, {
      jobId,
      list,
    });
  }
}

/** C9: after a collection there is what is needed, and nothing else. */
export async function checkOrphans(
  { stores, clock }: Pick<Remains, "stores" | "clock">,
  check: Check,
): Promise<void> {
  const { jobs: store, files, blobs } = stores;
  const uploads = {
    prefix: "uploads/",
    isReferenced: (key: string) => files.isReferenced(storageIdOf(key) ?? ""),
  };
  const owners = [outputsOwner(store), uploads];
  const events = createJobEvents({ log: pino({ level: "silent" }), metrics: createMetrics() });
  // Blobs are dated by the machine.
  const later = { ...clock, now: () => Date.now() + 2 * minCollectAgeMs };
  const retention = createRetention({
    ...{ clock: later, store, blobs, owners, events, failPoints: noFailPoints },
  });
  await retention.collect(new AbortController().signal);
  for await (const { key } of blobs.list()) {
    const owner = owners.find(({ prefix }) => key.startsWith(prefix));
    check("C9", (await owner?.isReferenced(key)) === true, { orphan: key });
  }
}
