// Adds the names of accounts to rows that name accounts by their ids alone. The operator's lists of keys, requests, work and
// webhooks share it.

import { type AdminCall, listOf } from "./context.ts";
import { pageSizes } from "./limits.ts";

/** A row of a list that belongs to an account, or to none. */
interface Row {
  readonly accountId: string | null;
}

/**
 * Rows with the names of their accounts, at most of the first hundred accounts. A name is "" for an account without one, and null where
 * auth did not tell it.
 */
export async function withNames<R extends Row>({ peers, options }: AdminCall, rows: readonly R[]) {
  const ids = new Set(rows.flatMap(({ accountId }) => accountId || []));
  const accountIds = [...ids].slice(0, pageSizes.most);
  const names = new Map<string, string>();
  if (accountIds.length > 0) {
    const { accounts } = await peers.auth
      .listAccounts({ accountIds }, options)
      .catch(() => ({ accounts: [] }));
    for (const { accountId, name } of accounts) names.set(accountId, name);
  }
  return rows.map((row) => ({ ...row, accountName: names.get(row.accountId ?? "") ?? null }));
}

/** A page of a list, its rows with the names of their accounts. */
export async function namedListOf(call: AdminCall, rows: readonly Row[], nextPageToken = "") {
  return listOf(await withNames(call, rows), nextPageToken);
}
