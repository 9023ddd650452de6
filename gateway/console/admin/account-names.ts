import { type AdminCall, listOf } from "./context.ts";
import { pageSizes } from "./limits.ts";

/** A row of a list that belongs to an account, or to none. */
interface Row {
  readonly accountId: string | null;
}

/**
 * A page of a list, each row with its account's name. It is "" for an account without a name, and null where auth did not tell it. A
 * list without pages has the names of its first hundred accounts.
 */
export async function namedListOf(call: AdminCall, rows: readonly Row[], nextPageToken = "") {
  const { auth } = call.peers;
  const ids = new Set(rows.flatMap(({ accountId }) => accountId || []));
  const accountIds = [...ids].slice(0, pageSizes.most);
  const names = new Map<string, string>();
  if (accountIds.length > 0) {
    const { accounts } = await auth
      .listAccounts({ accountIds }, call.options)
      .catch(() => ({ accounts: [] }));
    for (const { accountId, name } of accounts) names.set(accountId, name);
  }
  const named = rows.map((row) => ({
    ...row,
    accountName: names.get(row.accountId ?? "") ?? null,
  }));
  return listOf(named, nextPageToken);
}
