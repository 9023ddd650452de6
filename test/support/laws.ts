import { createHash } from "node:crypto";
import { createLedgerStore } from "../../services/billing/index.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import type { Entry, Wallet } from "../../services/billing/ledger/wallet.ts";
import { createJobStore } from "../../services/media/context.ts";
import { openFileStores } from "../../services/media/files/context.ts";
import { blobKeyOf } from "../../services/media/files/file.ts";
import type { QuotaStore } from "../../services/media/files/quota.ts";
import { quotaBytesOf } from "../../services/media/files/quota.ts";
import type { FileStore } from "../../services/media/files/store.ts";
import { type Job, type JobState, owedOf } from "../../services/media/jobs/job.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import type { WebhookStore } from "../../services/media/webhooks/store.ts";
import { createWebhookStore } from "../../services/media/webhooks/store-documents.ts";
import type { WorldStores } from "./world-stores.ts";

/** The data that the laws check, by their ports and so with any adapters. */
export interface LawStores extends Pick<WorldStores, "blobs"> {
  ledger: LedgerStore;
  jobs: JobStore;
  files: FileStore;
  quota: QuotaStore;
  webhooks: WebhookStore;
}

/** The stores of a world. It is called after the world has made them. */
export function lawStores({ database, blobs }: Omit<WorldStores, "queue">): LawStores {
  const { store: files, quota } = openFileStores(database);
  const [ledger, jobs] = [createLedgerStore(database), createJobStore(database)];
  return { ledger, jobs, files, quota, blobs, webhooks: createWebhookStore(database) };
}

/** Records that a law ("C4") holds, or the facts of its breach. */
export type Check = (law: string, holds: boolean, facts: unknown) => void;

/** Gathers breaches as texts. */
export function gatherer(): { breaches: string[]; check: Check } {
  const breaches: string[] = [];
  return {
    breaches,
    check(law, holds, facts) {
      if (!holds) breaches.push(`${law}: ${JSON.stringify(facts, bigints)}`);
    },
  };
}

const allStates: readonly JobState[] = [
  ...(["reserving", "queued", "running", "settling", "failing"] as const),
  ...(["completed", "failed", "rejected", "deleted"] as const),
];
const endStates: ReadonlySet<JobState> = new Set<JobState>([
  ...(["completed", "failed", "rejected", "deleted"] as const),
]);
/** More jobs, files and holds than an account has in any test. */
const many = 100_000;

/** All stored jobs of an account. */
export function jobsOf({ jobs }: LawStores, accountId: string, states = allStates): Promise<Job[]> {
  return jobs.list({ of: { accountId }, states, kind: undefined, after: undefined, limit: many });
}

/** Is the release of its references the only step that is left? */
export function hasEnded({ state }: Pick<Job, "state">): boolean {
  return endStates.has(state);
}

/** Ids of the open holds of an account. */
export async function openHolds({ ledger }: LawStores, accountId: string): Promise<string[]> {
  const { items } = await ledger.holds({ accountId, limit: many });
  return items.map(({ holdId }) => holdId);
}

/**
 * Checks an account at any moment. No job may have ended while its hold is open. The jobs are read first, because an ended hold stays
 * ended.
 */
export async function checkSeen(stores: LawStores, accountId: string, check: Check): Promise<void> {
  const over = await jobsOf(stores, accountId, ["completed", "failed"]);
  const open = new Set(await openHolds(stores, accountId));
  for (const { jobId, state } of over) check("C5", !open.has(jobId), { seen: jobId, state });
}

/** C1 to C5, C7 to C10 and C12 of an account without running work. With `forgets` jobs may be gone, because their time was short. */
export async function checkAccount(
  stores: LawStores,
  { accountId, forgets = false }: { accountId: string; forgets?: boolean },
  check: Check,
): Promise<Job[]> {
  const jobs = await jobsOf(stores, accountId);
  await checkLedger(stores.ledger, accountId, check, { jobs, forgets });
  for (const job of jobs) await checkJob(job, stores, check);
  await checkFiles(stores, accountId, check);
  return jobs;
}

/** C1 to C4 and C12 of an account. Every wallet is audited against its journal, entry by entry. C5 where the account's jobs are given. */
export async function checkLedger(
  ledger: LedgerStore,
  accountId: string,
  check: Check,
  known: { jobs: readonly Job[]; forgets: boolean } = { jobs: [], forgets: false },
): Promise<void> {
  for await (const snapshot of ledger.snapshots(accountId)) {
    const { wallet, holds } = snapshot;
    if (wallet) checkSums(wallet, holds, check);
    for await (const difference of auditWallet(snapshot, { entries: 0 })) {
      check("C3", false, difference);
    }
    const entries: Entry[] = [];
    for await (const page of snapshot.entries()) entries.push(...page);
    if (wallet) checkMonth(wallet, entries, check);
    checkHolds(entries, known, check);
  }
}

/** C1 and C2 */
function checkSums(wallet: Wallet, holds: readonly { amount: bigint }[], check: Check): void {
  const { free, held, spent, granted } = wallet;
  check("C1", free + held + spent === granted && free >= 0n && held >= 0n && spent >= 0n, wallet);
  check("C2", held === holds.reduce((sum, { amount }) => sum + amount, 0n), { wallet, holds });
}

/** C12 */
function checkMonth(wallet: Wallet, entries: readonly Entry[], check: Check): void {
  const settled = entries.filter(
    ({ kind, at }) => isCharge(kind) && new Date(at).toISOString().startsWith(wallet.month.period),
  );
  const spent = settled.reduce((sum, entry) => sum + entry.spentDelta, 0n);
  check("C12", spent === wallet.month.spent, { wallet, spent });
}

/** C4, and C5 by the money: each job is charged for by its end, once, and there are no other charges. */
function checkHolds(
  entries: readonly Entry[],
  { jobs, forgets }: { jobs: readonly Job[]; forgets: boolean },
  check: Check,
): void {
  const byId = new Map(jobs.map((job) => [job.jobId, job]));
  const byHold = Map.groupBy(
    entries.filter(({ holdId }) => holdId !== ""),
    ({ holdId }) => holdId,
  );
  for (const [holdId, list] of byHold) {
    const opened = list.filter(({ kind }) => kind === "hold");
    const facts = { holdId, list };
    // A charge without a hold settles a request whose hold billing has closed, or that never had one.
    const loose = list.filter(({ kind, holdKind }) => kind === "draw" && holdKind === "");
    const closed = list.filter((one) => isEnd(one.kind) && !loose.includes(one));
    check("C4", opened.length === 1 || (opened.length === 0 && loose.length === 1), facts);
    check("C4", closed.length <= 1 && loose.length <= 1, facts);
    check("C5", closed.length > 0 || opened.length === 0, { open: holdId });
    check("C4", (closed[0]?.spentDelta ?? 0n) <= (opened[0]?.heldDelta ?? 0n), facts);
    // Charged once, by one entry, and never more than the hold.
    const charges = list.filter(({ spentDelta }) => spentDelta > 0n);
    check("C4", charges.length <= 1, facts);
    check("C4", (loose[0]?.spentDelta ?? 0n) <= (opened[0]?.heldDelta ?? 0n), facts);
    if (opened[0]?.holdKind !== "job") continue;
    const job = byId.get(holdId);
    const charged = closed.reduce((sum, { spentDelta }) => sum + spentDelta, 0n);
    if (job) check("C5", charged === (job.charged ?? 0n), { ...facts, state: job.state });
    else check("C5", forgets || charged === 0n, facts);
  }
  const byRef = Map.groupBy(
    entries.filter(({ kind, holdKind }) => kind === "settle" && holdKind === "job"),
    ({ ref }) => ref,
  );
  for (const [ref, list] of byRef) check("C5", list.length === 1, { ref, list });
}

function isCharge(kind: Entry["kind"]): boolean {
  return kind === "settle" || kind === "draw";
}

function isEnd(kind: Entry["kind"]): boolean {
  return isCharge(kind) || kind === "release";
}

/** C5, C7, C8 and C9 of one job. */
async function checkJob(job: Job, { blobs }: LawStores, check: Check): Promise<void> {
  const { jobId, state, charged, spec, events } = job;
  check("C7", hasEnded(job), { jobId, state });
  if (state === "completed") check("C5", charged === spec.price, { jobId, charged });
  if (state === "failed") check("C5", charged === owedOf(job), { jobId, charged });
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

/** C9 and C10 of an account's files, even where none is left. */
async function checkFiles(
  { files, quota, blobs }: LawStores,
  accountId: string,
  check: Check,
): Promise<void> {
  const page = { after: undefined, purpose: undefined, ascending: true, limit: many };
  const own = (await files.list(accountId, page)) ?? [];
  for (const file of own) {
    const stat = await blobs.stat(blobKeyOf(file));
    check("C9", stat?.sizeBytes === file.sizeBytes, { file, stat });
  }
  const bytes = own.reduce((sum, file) => sum + quotaBytesOf(file), 0);
  const usage = await quota.usage(accountId);
  const holds = usage.usedBytes === bytes && usage.reservedBytes === 0;
  check("C10", holds, { accountId, bytes, usage });
}

function bigints(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}
