// A link to an account, for the rows of an operator's lists.

import { ShortId } from "../../kit/values.tsx";
import { accountPath } from "./accounts.tsx";
import type { OfAccount } from "./types.ts";

/** A link to an account, by its name where it has one, otherwise by its id. */
export function AccountLink({ of: { accountId, accountName } }: { of: OfAccount }) {
  return (
    <a
      href={accountPath(accountId)}
      title={accountName ? `${accountName}, ${accountId}` : accountId}
    >
      {accountName ? (
        <span class="account-name break">{accountName}</span>
      ) : (
        <ShortId id={accountId} />
      )}
    </a>
  );
}
