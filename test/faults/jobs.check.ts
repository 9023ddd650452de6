import { pino } from "pino";
import { createMetrics } from "#kit/metrics.ts";
import { createJobEvents } from "../../services/media/events.ts";
import { noFailPoints } from "../../services/media/fail-points.ts";
import { storageIdOf } from "../../services/media/files/file.ts";
import type { Job } from "../../services/media/jobs/job.ts";
import { outputsOwner } from "../../services/media/jobs/outputs.ts";
import { createRetention } from "../../services/media/jobs/retention.ts";
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
import { type FastTime, fastClock } from "./fast-clock.ts";
import type { Said } from "./jobs.child.ts";
import { readAsked } from "./jobs.upstream.ts";

/** What a run left behind. */
export interface Remains {
  stores: LawStores;
  /** Everybody who submits. */
  accounts: readonly string[];
  /** Where its upstream wrote down what it was asked. */
  folder: string;
  time: FastTime;
  /** Everything that its processes said. */
  said: readonly Said[];
  /** Jobs may be gone: their time was short. */
  forgets: boolean;
}

/** Is there nothing left to do? Reads the stores beside the processes that use them. */
export async function isQuiet(stores: LawStores, accounts: readonly string[]): Promise<boolean> {
  for (const accountId of accounts) {
    for (const job of await jobsOf(stores, accountId)) {
      if (!hasEnded(job) || (job.pinsHeld && job.state !== "rejected")) return false;
    }
    if ((await openHolds(stores, accountId)).length > 0) return false;
  }
  // Files on their way in or out, and the bytes that are set aside for them, whenever they are due.
  return (await stores.files.due(Number.MAX_SAFE_INTEGER, 1)).length === 0;
}

/** Reads the stores, and gives every breach of the invariants C1 to C12 of jobs and money in words. */
export async function findBreaches(remains: Remains): Promise<string[]> {
  const { stores, accounts, forgets } = remains;
  const { breaches, check } = gatherer();
  const jobs: Job[] = [];
  for (const accountId of accounts) {
    jobs.push(...(await checkAccount(stores, { accountId, forgets }, check)));
  }
  for await (const { ref } of stores.ledger.snapshots(undefined)) {
    check("C1", accounts.includes(ref.accountId), { nobody: ref });
  }
  checkAnswers(jobs, remains, check);
  checkUpstream(remains, check);
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
    check("C7", forgets || job?.state === "completed" || job?.state === "failed", { key, jobId });
    const fails = key.startsWith("bad");
    if (job) check("C7", job.state === (fails ? "failed" : "completed"), { key, state: job.state });
  }
  for (const one of said) check("C11", one.kind !== "leak", one);
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
async function checkOrphans({ stores, time }: Remains, check: Check): Promise<void> {
  const { jobs: store, files, blobs } = stores;
  const uploads = {
    prefix: "uploads/",
    isReferenced: (key: string) => files.isReferenced(storageIdOf(key) ?? ""),
  };
  const owners = [outputsOwner(store), uploads];
  const later = { ...time, fastMs: time.fastMs + 2 * minCollectAgeMs };
  const events = createJobEvents({ log: pino({ level: "silent" }), metrics: createMetrics() });
  // Blobs are dated by the machine, which is behind the fast time.
  const clock = fastClock(later);
  const retention = createRetention({
    ...{ clock, store, blobs, owners, events, failPoints: noFailPoints },
  });
  await retention.collect(new AbortController().signal);
  for await (const { key } of blobs.list()) {
    const owner = owners.find(({ prefix }) => key.startsWith(prefix));
    check("C9", (await owner?.isReferenced(key)) === true, { orphan: key });
  }
}
