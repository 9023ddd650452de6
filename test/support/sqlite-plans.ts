import type { SqliteDatabase } from "#kit/store/sqlite.ts";

/** What was sought in databases, and how SQLite finds it. */
export interface PlanWatch {
  /** The same database; its statements are looked at. */
  watched(db: SqliteDatabase): SqliteDatabase;
  /** Texts of statements that it saw. */
  seen: Set<string>;
  /** Plans that read a table or an index from end to end, or sort what they found. */
  scans: string[];
}

export function createPlanWatch(): PlanWatch {
  const seen = new Set<string>();
  const scans: string[] = [];
  return {
    seen,
    scans,
    watched(db) {
      const looked =
        <T extends unknown[], R>(run: (sql: string, ...values: T) => R) =>
        (sql: string, ...values: T): R => {
          if (/^(SELECT|UPDATE|DELETE)/.test(sql) && !seen.has(sql)) {
            seen.add(sql);
            const plan = db.all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail));
            scans.push(...plan.filter(isScan).map((step) => `${step}: ${sql}`));
          }
          return run(sql, ...values);
        };
      return {
        ...db,
        all: looked(db.all),
        get: looked(db.get),
        write: (work, options) =>
          db.write((tx) => {
            const { all, get, run } = tx;
            return work({ ...tx, all: looked(all), get: looked(get), run: looked(run) });
          }, options),
      };
    },
  };
}

function isScan(step: string): boolean {
  // How a subquery finds its rows is a step of its own.
  return /^(SCAN (?!json_each|\(subquery)|USE TEMP B-TREE)/.test(step);
}
