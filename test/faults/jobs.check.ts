import { createHash } from "node:crypto";
import { join } from "node:path";
import { pino } from "pino";
import { openFolderBlobs } from "#kit/blobs/folder.ts";
import type { BlobStore } from "#kit/blobs.ts";
import { randomIds } from "#kit/ids.ts";
import { createMetrics } from "#kit/metrics.ts";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { auditWallet } from "../../services/billing/audit.ts";
import { createSqliteLedger } from "../../services/billing/store-sqlite.ts";
import type { Entry } from "../../services/billing/wallet.ts";
import { createJobEvents } from "../../services/media/events.ts";
import { noFailPoints } from "../../services/media/fail-points.ts";
import { blobKeyOf, storageIdOf } from "../../services/media/files/file.ts";
import { createSqliteQuota } from "../../services/media/files/quota-sqlite.ts";
import { fileOf } from "../../services/media/files/schema-sqlite.ts";
import { createSqliteFileStore } from "../../services/media/files/store-sqlite.ts";
import type { Job } from "../../services/media/jobs/job.ts";
import { outputsOwner } from "../../services/media/jobs/outputs.ts";
import { createRetention } from "../../services/media/jobs/retention.ts";
import { createSqliteJobStore } from "../../services/media/jobs/store-sqlite.ts";
import { minCollectAgeMs } from "../../services/media/limits.ts";
import { type FastTime, fastClock } from "./fast-clock.ts";
import type { Said } from "./jobs.child.ts";
import { readAsked } from "./jobs.upstream.ts";

/** What a run left behind. */
export interface Remains {
  folder: string;
  time: FastTime;
  /** Everything that its processes said. */
  said: readonly Said[];
  /** Jobs may be gone: their time was short. */
  forgets: boolean;
}

const terminal = ["completed", "failed", "rejected"];

/** Is there nothing left to do? Reads the database beside the processes that use it. */
export function isQuiet(db: SqliteDatabase): boolean {
  const busy = db.get(
    `SELECT 1 FROM media_job WHERE state NOT IN ('completed', 'failed', 'rejected')
       OR (state <> 'rejected' AND pins_held = 1)`,
  );
  // Files on their way in or out, and the bytes that are set aside for them.
  const moving = db.get("SELECT 1 FROM media_file WHERE state IN ('storing', 'deleted')");
  return !busy && !moving && !db.get("SELECT 1 FROM ledger_hold");
}

/** What must not be seen at any moment, in one read of both ledgers: a job that has ended while its hold stands. */
export function seenBreaches(db: SqliteDatabase): string[] {
  return db
    .all(
      `SELECT j.job_id, j.state FROM media_job j JOIN ledger_hold h ON h.hold_id = j.job_id
         WHERE j.state IN ('completed', 'failed')`,
    )
    .map((row) => `C5, seen: ${row.job_id} is ${row.state} and its hold stands`);
}

/** Reads the stores, and gives every breach of the invariants C1 to C12 of jobs and money in words. */
export async function findBreaches(remains: Remains): Promise<string[]> {
  using db = openSqlite(join(remains.folder, "genmesh.db"));
  const clock = fastClock(remains.time);
  const ids = randomIds;
  const blobs = await openFolderBlobs({ folder: join(remains.folder, "blobs"), clock, ids });
  const jobs = await readJobs(db);
  const entries = await readEntries(db);
  const breaches: string[] = [];
  const check = (law: string, holds: boolean, facts: unknown) => {
    if (!holds) breaches.push(`${law}: ${JSON.stringify(facts, bigints)}`);
  };
  // C1 to C3: every wallet is audited against its journal, entry by entry.
  for await (const snapshot of createSqliteLedger(db).snapshots(undefined)) {
    const { free = 0n, held = 0n, spent = 0n, granted = 0n } = snapshot.wallet ?? {};
    check("C1", free + held + spent === granted && free >= 0n && held >= 0n, snapshot.wallet);
    for await (const difference of auditWallet(snapshot, { entries: 0 }))
      check("C3", false, difference);
    checkMonth(snapshot.wallet, entries.get(snapshot.ref.accountId) ?? [], check);
  }
  for (const [account, list] of entries) checkHolds(account, list, jobs, remains.forgets, check);
  for (const job of jobs) await checkJob(job, blobs, check);
  checkAnswers(jobs, remains, check);
  checkUpstream(remains, check);
  await checkBlobs(db, blobs, remains, check);
  return breaches;
}

type Check = (law: string, holds: boolean, facts: unknown) => void;

async function readJobs(db: SqliteDatabase): Promise<Job[]> {
  const store = createSqliteJobStore(db);
  const rows = db.all("SELECT job_id FROM media_job");
  const jobs = await Promise.all(rows.map((row) => store.find(String(row.job_id))));
  return jobs.flatMap((job) => job ?? []);
}

async function readEntries(db: SqliteDatabase): Promise<Map<string, Entry[]>> {
  const all = new Map<string, Entry[]>();
  for await (const snapshot of createSqliteLedger(db).snapshots(undefined)) {
    for await (const page of snapshot.entries()) {
      const known = all.get(snapshot.ref.accountId) ?? [];
      all.set(snapshot.ref.accountId, [...known, ...page]);
    }
  }
  return all;
}

/** C12 */
function checkMonth(
  wallet: { month: string; monthSpent: bigint } | undefined,
  entries: readonly Entry[],
  check: Check,
): void {
  if (!wallet) return;
  const settled = entries.filter(
    ({ kind, at }) => kind === "settle" && new Date(at).toISOString().startsWith(wallet.month),
  );
  const spent = settled.reduce((sum, entry) => sum + entry.spentDelta, 0n);
  check("C12", spent === wallet.monthSpent, { wallet, spent });
}

/** C4, and C5 seen from the money: each job is paid for as it ended, once, and nothing else is. */
function checkHolds(
  account: string,
  entries: readonly Entry[],
  jobs: readonly Job[],
  forgets: boolean,
  check: Check,
): void {
  const byHold = Map.groupBy(
    entries.filter(({ holdId }) => holdId !== ""),
    ({ holdId }) => holdId,
  );
  for (const [holdId, list] of byHold) {
    const opened = list.filter(({ kind }) => kind === "hold");
    const closed = list.filter(({ kind }) => kind === "settle" || kind === "release");
    const facts = { account, holdId, list };
    check("C4", opened.length === 1 && closed.length === 1, facts);
    check("C4", (closed[0]?.spentDelta ?? 0n) <= (opened[0]?.heldDelta ?? 0n), facts);
    const job = jobs.find(({ jobId }) => jobId === holdId);
    const isCharged = closed.some(({ kind }) => kind === "settle");
    if (!job) check("C5", forgets || !isCharged, facts);
    else check("C5", isCharged === (job.state === "completed"), { ...facts, state: job.state });
  }
  const byRef = Map.groupBy(
    entries.filter(({ kind }) => kind === "settle"),
    ({ ref }) => ref,
  );
  for (const [ref, list] of byRef) check("C5", list.length === 1, { ref, list });
}

/** C5, C8 and C9 of one job. */
async function checkJob(job: Job, blobs: BlobStore, check: Check): Promise<void> {
  const { jobId, state, charged, spec, events } = job;
  check("C7", terminal.includes(state), { jobId, state });
  if (state === "completed") check("C5", charged === spec.price, { jobId, charged });
  if (state === "failed") check("C5", charged === 0n, { jobId, charged });
  const commits = events.filter(({ name }) => name === "settling" || name === "failing");
  check("C8", commits.length <= 1 && (state === "rejected" || commits.length === 1), { events });
  for (const { blobKey, sizeBytes, sha256 } of job.outputs) {
    const stat = await blobs.stat(blobKey);
    check("C9", stat?.sizeBytes === sizeBytes, { jobId, blobKey, stat });
    const hash = createHash("sha256");
    if (stat) for await (const chunk of await blobs.openRead(blobKey)) hash.update(chunk);
    check("C9", hash.digest("hex") === sha256, { jobId, blobKey });
  }
  const wanted = spec.request.kind === "image" ? spec.request.count : 1;
  if (state === "completed") check("C9", job.outputs.length === wanted, { jobId });
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
    check("attempts", list.filter(({ what }) => what !== "resume").length <= 4, { jobId, list });
  }
}

/** C9 and C10: after a collection there is what is needed, and nothing else; and the quota is that of the files. */
async function checkBlobs(
  db: SqliteDatabase,
  blobs: BlobStore,
  { time }: Remains,
  check: Check,
): Promise<void> {
  const store = createSqliteJobStore(db);
  const files = createSqliteFileStore(db);
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
  await checkFiles(db, blobs, check);
}

/** C9 and C10 of the accounts' files, also of an account that has none any more. */
async function checkFiles(db: SqliteDatabase, blobs: BlobStore, check: Check): Promise<void> {
  const ready = db.all("SELECT * FROM media_file WHERE state = 'ready'").map(fileOf);
  for (const file of ready) {
    const stat = await blobs.stat(blobKeyOf(file));
    check("C9", stat?.sizeBytes === file.sizeBytes, { file, stat });
  }
  const charged = db.all("SELECT account_id FROM media_quota").map((row) => String(row.account_id));
  const quota = createSqliteQuota(db);
  for (const accountId of new Set([...charged, ...ready.map((file) => file.accountId)])) {
    const own = ready.filter((file) => file.accountId === accountId);
    const bytes = own.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const usage = await quota.usage(accountId);
    const holds = usage.usedBytes === bytes && usage.reservedBytes === 0;
    check("C10", holds, { accountId, bytes, usage });
  }
}

function bigints(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}
