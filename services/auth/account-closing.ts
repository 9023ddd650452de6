// Closes accounts for operators, step by step, so that a process that dies in between loses nothing. Here are auth's own steps:
// the account's state and its keys. Gateways lead all services through a closing.

import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AuthEvents } from "./events.ts";
import { ended } from "./key.ts";
import { maxClosingAccounts } from "./limits.ts";
import { toAccountMessage } from "./messages.ts";
import type { AuthStore } from "./store.ts";

/** The dependencies of the methods. */
interface ClosingContext {
  clock: Clock;
  store: AuthStore;
  events: AuthEvents;
}

/** The methods that close accounts. */
type ClosingMethods = Pick<
  ServiceImpl<typeof AuthService>,
  "closeAccount" | "listClosingAccounts" | "advanceClosing"
>;

/**
 * The first write of a closing is the account's state. From then on no look-up finds a key of the account, even if later steps are not done
 * yet. The gateways call for those steps. Any process may repeat every step.
 */
export function createClosingRoutes(context: ClosingContext): ClosingMethods {
  const { clock, store, events } = context;
  return {
    async closeAccount({ accountId }) {
      const nowMs = clock.now();
      const account = await store.beginClosing({ accountId, nowMs });
      if (account.closingAtMs === nowMs) events.accountClosing(account);
      await endKeys(context, accountId);
      return { account: toAccountMessage(account) };
    },
    async listClosingAccounts() {
      const accounts = await store.closingAccounts(maxClosingAccounts);
      return {
        accounts: await Promise.all(
          accounts.map(async (account) => ({
            account: toAccountMessage(account),
            keyIds: (await store.listKeys(account.accountId)).map(({ keyId }) => keyId),
          })),
        ),
      };
    },
    async advanceClosing({ accountId, isOver }) {
      const account = (await store.findAccount(accountId)) ?? refuse(ErrorReason.ACCOUNT_NOT_FOUND);
      if (account.closingAtMs === undefined) {
        refuse(ErrorReason.OPERATION_CONFLICT, { message: "The account is not being closed." });
      }
      await endKeys(context, accountId);
      if (!isOver) return { account: toAccountMessage(account) };
      const nowMs = clock.now();
      const closed = await store.endClosing({ accountId, nowMs });
      if (closed.closedAtMs === nowMs) events.accountClosed(closed);
      return { account: toAccountMessage(closed) };
    },
  };
}

/** Deletes the keys of an account and erases the texts that people wrote on them. A key that is already so stays unchanged. */
async function endKeys({ clock, store, events }: ClosingContext, accountId: string): Promise<void> {
  const nowMs = clock.now();
  for (const { keyId } of await store.listKeys(accountId)) {
    const key = await store.changeKey(keyId, (one) => ended(one, nowMs));
    if (key.revokedAtMs === nowMs) events.keyChanged("revoked", key);
  }
}
