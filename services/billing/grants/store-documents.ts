// Keeps monthly grants in SQLite and MongoDB, with the promises of `grant-store.ts`.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import { removed } from "#kit/documents/port.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { GrantStore } from "./grant-store.ts";
import { changedGrant, type MonthlyGrant } from "./monthly-grant.ts";

const indexes = { due: { key: { dueAt: 1, accountId: 1 } } } as const;

const grantSchema: DocumentsSchema<MonthlyGrant, keyof typeof indexes> = {
  name: "ledger_monthly_grant",
  id: "accountId",
  columns: { usdMicros: "bigint", credits: "bigint", dueAt: "integer" },
  indexes,
  compare: { fields: ["usdMicros", "credits", "dueAt"] },
};

const tables = [
  `CREATE TABLE ledger_monthly_grant (
     account_id TEXT PRIMARY KEY,
     usd_micros INTEGER NOT NULL,
     credits INTEGER NOT NULL,
     due_at INTEGER NOT NULL,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
];

/** The table, collection and index of monthly grants. */
export const grantsComponent: Component = {
  name: "ledger_monthly_grants",
  kinds: [grantSchema],
  tables,
};

/** The store of monthly grants in a process's database, beside the journals. */
export function createGrantStore(database: Database): GrantStore {
  const grants = documentsIn(database, grantSchema);
  const none = (accountId: string): MonthlyGrant => ({
    ...{ accountId, usdMicros: 0n, credits: 0n, dueAt: 0 },
  });
  return {
    open: () => openDocuments(database, grantsComponent),
    find: (accountId) => grants.find(accountId),
    async change(accountId, asked, now) {
      let changed: MonthlyGrant | undefined;
      const step = (found: MonthlyGrant) => {
        const before = found.dueAt === 0 ? undefined : found;
        changed = changedGrant(accountId, before, asked, now);
        return changed ?? (before ? removed : undefined);
      };
      await grants.change(accountId, step, { first: none(accountId) });
      return changed;
    },
    due: async ({ now, after, limit }) => {
      const behind = [after?.dueAt ?? 0, after?.accountId ?? ""];
      const found = await grants.seek("due", { behind, limit });
      return found.filter(({ dueAt }) => dueAt <= now);
    },
    async moveOn(accountId, dueAt) {
      await grants.change(accountId, (grant) =>
        grant.dueAt < dueAt ? { ...grant, dueAt } : undefined,
      );
    },
    erase: (accountId) => grants.remove(accountId),
  };
}
