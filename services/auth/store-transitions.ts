// Makes the store's transitions of a key or account from the pure functions of `key.ts`. Both databases' stores use it, and also
// share the refusals here.

import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { type Account, closed, closing, withState } from "./account.ts";
import { hasHash, isRepeated, type Key, revoked, rotated } from "./key.ts";
import type { AuthStore, NewAccount, StoredKey } from "./store.ts";

/** The changes of one key or one account in a database. */
export interface AuthChanges {
  /**
   * Changes a key as the store's `changeKey`. `unsure` means that an attempt without an answer may have made this change. Refuses
   * with OPERATION_CONFLICT where a key has the new secret already.
   */
  changeKey(keyId: string, next: (key: StoredKey, unsure: boolean) => Key): Promise<StoredKey>;
  /** The same for an account. All of its keys count as changed. Refuses with ACCOUNT_NOT_FOUND, and as `next` does. */
  changeAccount(accountId: string, next: (account: Account) => Account): Promise<Account>;
}

/** The store's transitions of one key or one account, the same on each database. */
export function createTransitions({
  changeKey,
  changeAccount,
}: AuthChanges): Pick<
  AuthStore,
  | "rotateKey"
  | "revokeKey"
  | "changeKey"
  | "changeAccount"
  | "setAccountState"
  | "beginClosing"
  | "endClosing"
> {
  return {
    rotateKey: ({ keyId, secret, graceMs, nowMs, allow, operation }) =>
      changeKey(keyId, (key, unsure) => {
        // No other call brings this secret. So an attempt whose answer was lost has rotated the key.
        if (unsure && hasHash(key, secret.sha256)) return key;
        if (isRepeated(key, operation)) return key;
        allow?.(key);
        return rotated(key, secret, graceMs, nowMs, operation);
      }),
    revokeKey: ({ keyId, nowMs }) => changeKey(keyId, (key) => revoked(key, nowMs)),
    changeKey,
    changeAccount,
    setAccountState: ({ accountId, suspended, nowMs }) =>
      changeAccount(accountId, (account) => withState(account, suspended, nowMs)),
    beginClosing: ({ accountId, nowMs }) =>
      changeAccount(accountId, (account) => closing(account, nowMs)),
    endClosing: ({ accountId, nowMs }) =>
      changeAccount(accountId, (account) => closed(account, nowMs)),
  };
}

/** Refuses a repeat of an account's creation with another name or secret than those of the first call. */
export function refuseOtherAccount(
  { account, key, secretBrought }: NewAccount,
  made: Account,
  hadSecret: (sha256: Uint8Array) => boolean,
): void {
  // Compares with the first name and secret, so that a repeat after a change of them is still accepted.
  const isSameName = (made.firstName ?? made.name) === account.name;
  const isSameSecret = !secretBrought || hadSecret(key.secret.sha256);
  if (!isSameName || !isSameSecret) refuse(ErrorReason.OPERATION_MISMATCH);
}

/** The refusal of a secret that another key has. */
export function refuseUsedSecret(): never {
  refuse(ErrorReason.OPERATION_CONFLICT, { message: "The secret belongs to another key." });
}

/** The refusal of a key beyond the most that an account may have. */
export function refuseMoreKeys(): never {
  refuse(ErrorReason.OPERATION_CONFLICT, {
    message: `An account has at most ${maxKeysPerAccount} keys.`,
  });
}
