import type { SqlRunner } from "#kit/sqlite.ts";
import type { Standing } from "./census.ts";

// However many wait, indexes alone are read (the planner would read the rows); of the others there are never many.
const queuedSql = (parked: 0 | 1) => `SELECT kind, count(*) AS jobs, min(created_at) AS oldest
  FROM media_job INDEXED BY media_job_${parked ? "parked" : "waiting"}
  WHERE state = 'queued' AND parked = ${parked} GROUP BY kind`;
const waitingSql = `SELECT kind, 'queued' AS state, sum(jobs) AS jobs, min(oldest) AS oldest
  FROM (${queuedSql(0)} UNION ALL ${queuedSql(1)}) GROUP BY kind`;
const movingSql = `SELECT kind, state, count(*) AS jobs, min(created_at) AS oldest FROM media_job
  WHERE state IN ('reserving', 'running', 'settling', 'failing') GROUP BY kind, state`;

/** Open jobs by kind and state. */
export function readCensus(db: SqlRunner): Standing[] {
  return [...db.all(waitingSql), ...db.all(movingSql)].map((row) => ({
    kind: row.kind as Standing["kind"],
    state: row.state as Standing["state"],
    jobs: Number(row.jobs),
    oldestCreatedAt: Number(row.oldest),
  }));
}
