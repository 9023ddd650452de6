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

/** The state after a run. */
export interface Remains {
  stores: LawStores;
  /** The accounts of the round that is examined. */
  accounts: readonly string[];
  /** The accounts of the whole run. */
  everybody: readonly string[];
  /** The folder in which its upstream recorded its requests. */
  folder: string;
  clock: Clock;
  /** All lines of its processes in the round. */
  said: readonly Said[];
  /** Jobs may have been removed, because their time was short. */
  forgets: boolean;
  /** The webhooks of its jobs. */
  received: readonly Received[];
}

/**
 * The work that is left, a line each. Processes use the stores meanwhile, so these are read in the order in which work moves from one to
 * the next. Work that leaves a store after its reading is then found in a later one.
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
  // Incoming and outgoing files, and the bytes that are held for them, even if they are due later.
  for (const { fileId, state } of await stores.files.due(Number.MAX_SAFE_INTEGER, 10)) {
    left.push(`${fileId} is ${state}`);
  }
  return left;
}

/** Reads the stores, and describes every breach of the invariants C1 to C12 of jobs and money. */
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

/** C6, C7 and C11: the answers to callers are true. */
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

/** Every end of an accepted job was sent by a webhook at least once, and always with the same content. */
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

/** The type of the webhook for a submission's job. For a deleted or removed job, the only possible one. */
function typeOf(key: string, job: Job | undefined): string {
  if (job && wasCancelled(job)) return "job.cancelled";
  const state = job && job.state !== "deleted" ? job.state : endOf(key);
  return state === "failed" ? "job.failed" : "job.completed";
}

/** The end of a submission's job. */
function endOf(key: string): Job["state"] {
  if (key.startsWith("deleted")) return "deleted";
  return key.startsWith("bad") || key.startsWith("endless") ? "failed" : "completed";
}

/** A task with a name from the upstream is never begun a second time. Every attempt has the job's own key. */
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

/** C9: a collection leaves all needed blobs, and no others. */
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
  // Blobs have times by the machine's clock.
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
