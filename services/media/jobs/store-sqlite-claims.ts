// Finds the fairest job in SQLite, within the catalog's limits. `store-sqlite.ts` claims it, and has the rest of the store.

import type { SqlRunner } from "#kit/store/sqlite.ts";
import { enoughIdleGroups, linePage, maxClaimGroups, maxLostJobs } from "../limits.ts";
import { type Candidate, fairestOf, fewestRunning } from "./fairness.ts";
import type { WorkQuery } from "./store.ts";
import { type LaneNames, readLine, type WaitingLine } from "./waiting-jobs.ts";

const runningSql = `SELECT account_id, model, count(*) AS jobs FROM media_job
  WHERE state = 'running' AND kind = ? GROUP BY account_id, model`;
const runningOfSql = `SELECT account_id, model, upstream FROM media_job
  WHERE state = 'running' AND kind = ?`;
const lostSql = `SELECT job_id, account_id, created_at FROM media_job
  WHERE state = 'running' AND kind = ? AND lease_until <= ?
    AND upstream NOT IN (SELECT value FROM json_each(?))
    AND upstream || ' ' || account_id NOT IN (SELECT value FROM json_each(?))
  ORDER BY lease_until LIMIT ?`;
const nextGroupSql = `SELECT model, upstream, account_id, created_at, job_id FROM media_job
  WHERE state = 'queued' AND parked = 0 AND kind = ? AND (model, upstream, account_id) > (?, ?, ?)
    AND (model, upstream, account_id) <= (?, ?, ?)
  ORDER BY model, upstream, account_id, created_at LIMIT 1`;

const servedSql = `SELECT claimed_at FROM media_job WHERE kind = ? AND account_id = ?
  AND claimed_at IS NOT NULL ORDER BY claimed_at DESC LIMIT 1`;
const linePageSql = `SELECT model, upstream, account_id, created_at FROM media_job
  WHERE state = 'queued' AND parked = 0 AND kind = ? AND (model, upstream, account_id) > (?, ?, ?)
  ORDER BY model, upstream, account_id, created_at LIMIT ?`;
const servedOfSql = `SELECT value AS account_id, (SELECT claimed_at FROM media_job
  WHERE kind = ? AND account_id = value AND claimed_at IS NOT NULL ORDER BY claimed_at DESC LIMIT 1)
  AS claimed_at FROM json_each(?)`;

/** Finds the fairest jobs. Keeps the place where a search of very many groups ended. */
export function createFairest(): (tx: SqlRunner, query: WorkQuery) => string | undefined {
  const begins = new Map<string, LaneNames>();
  return (tx, query) => {
    const { kind } = query;
    const running = countRunning(tx, kind);
    const lost = findLost(tx, query, running.ofAccount);
    const from = begins.get(kind) ?? first;
    const waiting = findWaiting(tx, query, running, from);
    if (waiting.end) begins.set(kind, waiting.end);
    else begins.delete(kind);
    return fairest(tx, kind, [...lost, ...waiting.candidates])?.jobId;
  };
}

/** Does a job of this kind wait, or is one lost? */
export function isAnyClaimable(db: SqlRunner, kind: string, leasesOverAt: number): boolean {
  const isWaiting = db.get(nextGroupSql, kind, ...first, ...last) !== undefined;
  return isWaiting || db.get(lostSql, kind, leasesOverAt, "[]", "[]", 1) !== undefined;
}

/** See JobStore. */
export function readWaitingLine(db: SqlRunner, kind: string): Promise<WaitingLine | undefined> {
  return readLine({
    page: async (behind) =>
      db.all(linePageSql, kind, ...behind, linePage).map((row) => ({
        lane: [String(row.model), String(row.upstream), String(row.account_id)] as const,
        createdAt: Number(row.created_at),
      })),
    running: async () =>
      db.all(runningOfSql, kind).map((row) => ({
        accountId: String(row.account_id),
        model: String(row.model),
        upstream: String(row.upstream),
      })),
    served: async (accountIds) => {
      const rows = db.all(servedOfSql, kind, JSON.stringify(accountIds));
      return new Map(rows.map((row) => [String(row.account_id), Number(row.claimed_at ?? 0)]));
    },
  });
}

/** Sorts behind every name: the largest code point. */
const afterAll = "\u{10ffff}";
/** Before and behind all groups. */
const first: LaneNames = ["", "", ""];
const last: LaneNames = [afterAll, "", ""];

/** Running jobs of a kind, by account and by model. */
interface Running {
  ofAccount: Map<string, number>;
  ofModel: Map<string, number>;
}

function countRunning(tx: SqlRunner, kind: string): Running {
  const running: Running = { ofAccount: new Map(), ofModel: new Map() };
  const add = (map: Map<string, number>, name: string, jobs: number) => {
    map.set(name, (map.get(name) ?? 0) + jobs);
  };
  for (const row of tx.all(runningSql, kind)) {
    add(running.ofAccount, String(row.account_id), Number(row.jobs));
    add(running.ofModel, String(row.model), Number(row.jobs));
  }
  return running;
}

function findLost(
  tx: SqlRunner,
  { kind, now, leasesOverAt = now, fullUpstreams, fullAccounts = new Map() }: WorkQuery,
  running: Running["ofAccount"],
): Candidate[] {
  const full = JSON.stringify(fullUpstreams);
  const pairs = [...fullAccounts].flatMap(([upstream, ids]) =>
    ids.map((id) => `${upstream} ${id}`),
  );
  const accounts = JSON.stringify(pairs);
  return tx.all(lostSql, kind, leasesOverAt, full, accounts, maxLostJobs).map((row) => {
    const accountId = String(row.account_id);
    return {
      jobId: String(row.job_id),
      accountId,
      createdAt: Number(row.created_at),
      running: (running.get(accountId) ?? 1) - 1,
    };
  });
}

/**
 * The oldest waiting job of each group, with one index seek for each group. Groups behind `from` come first, then those up to it, so
 * that each has its turn equally often. The list is cut where enough of idle accounts were seen, so that no fairer one exists, or where
 * there are too many. Then the next search goes on at `end`.
 */
function findWaiting(
  tx: SqlRunner,
  { kind, fullUpstreams, fullAccounts, modelLimits }: WorkQuery,
  running: Running,
  from: LaneNames,
): { candidates: Candidate[]; end: LaneNames | undefined } {
  const candidates: Candidate[] = [];
  let idle = 0;
  let [group, until] = [from, last];
  for (let seen = 0; seen < maxClaimGroups && idle < enoughIdleGroups; seen++) {
    const row = tx.get(nextGroupSql, kind, ...group, ...until);
    if (!row) {
      if (until !== last || from === first) return { candidates, end: undefined };
      [group, until] = [first, from];
      continue;
    }
    const [model, upstream, accountId] = [row.model, row.upstream, row.account_id].map(String);
    if (model === undefined || upstream === undefined || accountId === undefined) continue;
    const limit = modelLimits.get(model);
    if (limit !== undefined && (running.ofModel.get(model) ?? 0) >= limit) {
      group = [model, afterAll, ""];
      continue;
    }
    if (fullUpstreams.includes(upstream)) {
      group = [model, upstream, afterAll];
      continue;
    }
    group = [model, upstream, accountId];
    if (fullAccounts?.get(upstream)?.includes(accountId)) continue;
    const ownRunning = running.ofAccount.get(accountId) ?? 0;
    if (ownRunning === 0) idle++;
    const [jobId, createdAt] = [String(row.job_id), Number(row.created_at)];
    candidates.push({ jobId, accountId, createdAt, running: ownRunning });
  }
  return { candidates, end: group };
}

function fairest(
  tx: SqlRunner,
  kind: string,
  candidates: readonly Candidate[],
): Candidate | undefined {
  const tied = fewestRunning(candidates);
  const served = new Map<string, number>();
  for (const { accountId } of tied) {
    if (tied.length === 1 || served.has(accountId)) continue;
    served.set(accountId, Number(tx.get(servedSql, kind, accountId)?.claimed_at ?? 0));
  }
  return fairestOf(tied, (accountId) => served.get(accountId) ?? 0);
}
