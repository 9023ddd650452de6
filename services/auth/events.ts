import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { Account, Key } from "./key.ts";

/** What auth tells the operator. Ids are told, secrets, their hashes and hints never. */
export interface AuthEvents {
  accountCreated(account: Account): void;
  keyChanged(change: "created" | "rotated" | "revoked", key: Key): void;
  keyLookedUp(outcome: "found" | "invalid"): void;
  watchersChanged(count: number): void;
  /** The first failure of a row is logged, each is counted. */
  pollFailed(error: unknown, inARow: number): void;
  pollRecovered(): void;
}

/** Makes the counters. */
export function createAuthEvents(deps: { log: Logger; metrics: Metrics }): AuthEvents {
  const { log, metrics } = deps;
  const accounts = metrics.counter("genmesh_auth_accounts_created_total", "Accounts made.", []);
  const changes = metrics.counter(
    "genmesh_auth_key_changes_total",
    "Keys made, rotated, revoked.",
    ["change"],
  );
  const lookUps = metrics.counter("genmesh_auth_key_look_ups_total", "Look-ups by secret.", [
    "outcome",
  ]);
  const watchers = metrics.gauge("genmesh_auth_watchers", "Open watches of key changes.", []);
  const pollFailures = metrics.counter(
    "genmesh_auth_poll_failures_total",
    "Looks at the store's revision that failed.",
    [],
  );
  return {
    accountCreated(account) {
      accounts.inc();
      log.info({ accountId: account.accountId }, "account created");
    },
    keyChanged(change, key) {
      changes.inc({ change });
      log.info({ accountId: key.accountId, keyId: key.keyId, change }, "key changed");
    },
    keyLookedUp: (outcome) => lookUps.inc({ outcome }),
    watchersChanged: (count) => watchers.set(count),
    pollFailed(error, inARow) {
      pollFailures.inc();
      if (inARow === 1) log.warn({ err: error }, "the key store does not answer");
    },
    pollRecovered: () => log.info("the key store answers again"),
  };
}
