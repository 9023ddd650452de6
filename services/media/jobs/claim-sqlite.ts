import type { SqlRunner } from "#kit/sqlite.ts";
import { maxClaimGroups, maxLostJobs } from "../limits.ts";
import { type Candidate, fairestOf, fewestRunning } from "./fairness.ts";
import type { ClaimQuery } from "./store.ts";

/** A group of waiting jobs: where the next one begins. */
type Group = readonly [model: string, upstream: string, accountId: string];

const runningSql = `SELECT account_id, model, count(*) AS jobs FROM media_job
  WHERE state = 'running' AND kind = ? GROUP BY account_id, model`;
const lostSql = `SELECT job_id, account_id, created_at FROM media_job
  WHERE state = 'running' AND kind = ? AND lease_until <= ?
    AND upstream NOT IN (SELECT value FROM json_each(?))
    AND upstream || ' ' || account_id NOT IN (SELECT value FROM json_each(?))
  ORDER BY lease_until LIMIT ?`;
const nextGroupSql = `SELECT model, upstream, account_id, created_at, job_id FROM media_job
  WHERE state = 'queued' AND parked = 0 AND kind = ? AND (model, upstream, account_id) > (?, ?, ?)
  ORDER BY model, upstream, account_id, created_at LIMIT 1`;

const servedSql = `SELECT claimed_at FROM media_job WHERE kind = ? AND account_id = ?
  AND claimed_at IS NOT NULL ORDER BY claimed_at DESC LIMIT 1`;

/** Finds fairest jobs; keeps where a search of very many groups ended. */
export function createFairest(): (tx: SqlRunner, query: ClaimQuery) => string | undefined {
  const begins = new Map<string, Group>();
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
  const isWaiting = db.get(nextGroupSql, kind, ...first) !== undefined;
  return isWaiting || db.get(lostSql, kind, leasesOverAt, "[]", "[]", 1) !== undefined;
}

const first: Group = ["", "", ""];

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
  { kind, now, leasesOverAt = now, fullUpstreams, fullAccounts = new Map() }: ClaimQuery,
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

/** The oldest waiting job of each group, one index seek a group; `end` where there may be more groups. */
function findWaiting(
  tx: SqlRunner,
  { kind, fullUpstreams, fullAccounts, modelLimits }: ClaimQuery,
  running: Running,
  from: Group,
): { candidates: Candidate[]; end: Group | undefined } {
  const candidates: Candidate[] = [];
  let group = from;
  for (let seen = 0; seen < maxClaimGroups; seen++) {
    const row = tx.get(nextGroupSql, kind, ...group);
    if (!row) return { candidates, end: undefined };
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
    candidates.push({
      jobId: String(row.job_id),
      accountId,
      createdAt: Number(row.created_at),
      running: running.ofAccount.get(accountId) ?? 0,
    });
  }
  return { candidates, end: group };
}

/** Sorts behind every name: the largest code point. */
const afterAll = "\u{10ffff}";

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
