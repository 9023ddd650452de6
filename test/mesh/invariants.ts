import { createHash } from "node:crypto";
import { systemClock } from "#kit/time/clock.ts";
import { tempFolder } from "../host/process.ts";
import { checkAccount, gatherer, hasEnded, jobsOf, lawStores } from "../support/laws.ts";
import { until } from "../support/until.ts";
import { openWorldStores } from "../support/world-stores.ts";
import { ask } from "./ask.ts";
import { imagePrice, textPriceMicros } from "./catalog.ts";
import type { Load } from "./load.ts";
import type { MeshWorld } from "./world.ts";

/** The faults that a load has left. */
export interface Verdict {
  /** Missing jobs and files, jobs without an end, and answers without a charge. */
  lost: string[];
  /** Jobs that exist twice, and all double charges. */
  double: string[];
  /** The number of accepted jobs by state. */
  jobs: Record<string, number>;
}

/** Milliseconds until everything must have ended: a lease, its sweep, and three lost attempts of a job. */
const endedWithinMs = 120_000;
/** The time from the end of a hold to its job's, which a sweep makes where the worker died. */
const lastStep = { withinMs: 60_000, everyMs: 250 };

/**
 * Waits until all work has ended. Then checks the laws in the stores, and compares ledger, jobs and files with the answers to the load's
 * callers.
 */
export async function judge(world: MeshWorld, load: Load): Promise<Verdict> {
  const verdict: Verdict = { lost: [], double: [], jobs: {} };
  const states = await endsOf(world, load, verdict);
  await noOpenHold(world, load, verdict);
  await judgeLaws(world, load, verdict);
  await judgeMoney(world, load, states, verdict);
  await judgeAudit(world, load, verdict);
  return verdict;
}

/** C1 to C12 of the caller's account, read directly from the stores. */
async function judgeLaws(
  { stores: { env } }: MeshWorld,
  { caller, accepted, submissions }: Load,
  { lost, double }: Verdict,
): Promise<void> {
  await using scratch = await tempFolder();
  await using opened = await openWorldStores({ folder: scratch.path, clock: systemClock, env });
  const stores = lawStores(opened);
  const { accountId } = caller;
  // No other check waits for a job whose acceptance no caller saw. Such a job may end a little after its hold.
  await until(
    "the end of all jobs",
    async () => (await jobsOf(stores, accountId)).every(hasEnded),
    lastStep,
  ).catch(() => {});
  const { breaches, check } = gatherer();
  const jobs = await checkAccount(stores, { accountId }, check);
  const known = new Set(jobs.map(({ jobId }) => jobId));
  // A job that was refused because a store was away frees its key for the next try, and was never charged (C5).
  const kept = jobs.filter(({ state }) => state !== "rejected").length;
  if (kept > submissions()) double.push(`${submissions()} submissions, ${kept} jobs`);
  for (const { jobId } of accepted) check("C7", known.has(jobId), { jobId });
  for (const breach of breaches) {
    // Two ends of a hold, and two commits of a job, count as double.
    (/^C[48]:/.test(breach) ? double : lost).push(breach);
  }
}

async function endsOf(
  world: MeshWorld,
  { caller, accepted }: Load,
  { lost, double, jobs }: Verdict,
): Promise<Map<string, string>> {
  const [gateway = ""] = world.gateways;
  const states = new Map<string, string>();
  const giveUpAt = performance.now() + endedWithinMs;
  for (const { jobId } of accepted) {
    const path = `/images/generations/${jobId}`;
    // A failed look does not count as a job.
    const seen = async () => (await ask(gateway, { caller, path }).catch(() => undefined))?.json;
    const job = await until(
      "a job's end",
      async () => {
        const document = await seen();
        return document?.terminal ? document : undefined;
      },
      { withinMs: Math.max(0, giveUpAt - performance.now()), everyMs: 250 },
    ).catch(() => undefined);
    const state = job?.status ?? "lost";
    if (state === "lost") lost.push(`job ${jobId} has not ended`);
    states.set(jobId, state);
    jobs[state] = (jobs[state] ?? 0) + 1;
    for (const { url, sha256 } of job?.images ?? []) {
      const found = await digestOf(`${gateway}${new URL(url).pathname}`, caller.key);
      if (found !== sha256) lost.push(`a file of job ${jobId} is not there: ${found}`);
    }
  }
  const byKey = Map.groupBy(accepted, ({ idempotencyKey }) => idempotencyKey);
  for (const [key, list] of byKey) {
    if (new Set(list.map(({ jobId }) => jobId)).size > 1) double.push(`jobs of key ${key}`);
  }
  return states;
}

/** The digest of a file, or the status of its absence. */
async function digestOf(url: string, key: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}` };
  return await until(
    "a file, or that there is none",
    async () => {
      const answer = await fetch(url, { headers }).catch(() => undefined);
      const bytes = await answer?.bytes().catch(() => undefined);
      if (!answer || !bytes || answer.status >= 500) return undefined;
      return answer.ok ? createHash("sha256").update(bytes).digest("hex") : `${answer.status}`;
    },
    { withinMs: endedWithinMs, everyMs: 250 },
  ).catch(() => "no answer");
}

async function noOpenHold(world: MeshWorld, { caller }: Load, { lost }: Verdict): Promise<void> {
  const { accountId } = caller;
  let open = ["the holds could not be read"];
  await until(
    "the end of all holds",
    async () => {
      const page = await world.operator.billing.listHolds({ accountId }).catch(() => undefined);
      if (!page) return false;
      open = page.holds.map(({ ref, kind }) => `hold of ${ref} (kind ${kind}) is open`);
      return open.length === 0;
    },
    { withinMs: endedWithinMs, everyMs: 500 },
  ).catch(() => lost.push(...open));
}

/** The charges agree with the answers to callers: each completed job has its price, each answered text one charge. */
async function judgeMoney(
  world: MeshWorld,
  load: Load,
  states: ReadonlyMap<string, string>,
  { lost, double }: Verdict,
): Promise<void> {
  const entries = await entriesOf(world, load.caller.accountId);
  const charges = new Map<string, bigint>();
  for (const { holdId, spentDelta } of entries) {
    if (holdId !== "") charges.set(holdId, (charges.get(holdId) ?? 0n) + spentDelta);
  }
  let textCharges = 0;
  for (const [holdId, charged] of charges) {
    if (!holdId.startsWith("job_")) {
      if (charged > 0n) textCharges++;
      if (charged > textPriceMicros * 10n) double.push(`${charged} charged for text ${holdId}`);
      continue;
    }
    const state = states.get(holdId);
    const wanted = state === "completed" ? imagePrice : 0n;
    // A job whose acceptance no caller saw exists too. A job that has not ended is already reported.
    if (state !== undefined && state !== "lost" && charged !== wanted) {
      (charged < wanted ? lost : double).push(`${charged} charged for job ${holdId}`);
    }
  }
  const texts = load.outcomes.filter(({ action }) => action === "text" || action === "stream");
  const answered = texts.filter(({ failure }) => failure === undefined).length;
  if (textCharges < answered) lost.push(`${answered} answers, ${textCharges} charged`);
  if (textCharges > texts.length) double.push(`${texts.length} requests, ${textCharges} charged`);
}

async function entriesOf(world: MeshWorld, accountId: string) {
  const all = [];
  let pageToken = "";
  do {
    const page = await world.operator.billing.listEntries({
      accountId,
      pageSize: 1_000,
      pageToken,
    });
    all.push(...page.entries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return all;
}

/** The findings that an operator would see. */
async function judgeAudit(world: MeshWorld, { caller }: Load, { lost }: Verdict): Promise<void> {
  const { accountId } = caller;
  for await (const { finding } of world.operator.billing.auditLedger({ accountId })) {
    if (finding.case !== "difference") continue;
    const { field, recorded, computed } = finding.value;
    lost.push(`the ledger does not add up: ${field} is ${recorded}, entries say ${computed}`);
  }
}
