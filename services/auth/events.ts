// Logs and counts what happens in auth, all of it in this one place, so that no secret gets into a log.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Account } from "./account.ts";
import type { Key } from "./key.ts";
import type { Session } from "./session.ts";

/** Reports auth's events to the operator by logs and metrics. Reports hold ids, and never secrets, their hashes or hints. */
export interface AuthEvents {
  accountCreated(account: Account): void;
  accountStateSet(account: Account): void;
  accountChanged(account: Account): void;
  accountClosing(account: Account): void;
  accountClosed(account: Account): void;
  keyChanged(change: "created" | "updated" | "rotated" | "revoked", key: Key): void;
  keyLookedUp(outcome: "found" | "invalid"): void;
  sessionBegan(session: Session): void;
  sessionEnded(session: Session): void;
  /** A secret of the console was wrong. */
  signInFailed(): void;
  /** A line of the audit log could not be written. */
  lineMissing(error: unknown): void;
  watchersChanged(count: number): void;
  /** Only the first failure of a row is logged. Every failure is counted. */
  pollFailed(error: unknown, inARow: number): void;
  pollRecovered(): void;
}

export function createAuthEvents(deps: { log: Logger; metrics: Metrics }): AuthEvents {
  const { log, metrics } = deps;
  const accounts = metrics.counter("genmesh_auth_accounts_created_total", "Accounts made.", []);
  const changes = metrics.counter(
    "genmesh_auth_key_changes_total",
    "Changes of keys: made, updated, rotated, revoked.",
    ["change"],
  );
  const lookUps = metrics.counter(
    "genmesh_auth_key_look_ups_total",
    "Keys looked up by their secret, by outcome.",
    ["outcome"],
  );
  const watchers = metrics.gauge(
    "genmesh_auth_watchers",
    "Watches of key changes that gateways have open.",
    [],
  );
  const sessions = metrics.counter(
    "genmesh_auth_sessions_total",
    "Sessions of the console: begun, ended by their owners, and sign-ins that failed.",
    ["event"],
  );
  const sessionFields = ({ keyId, identity }: Session) => ({
    role: keyId === undefined ? "operator" : "key",
    ...(keyId === undefined ? {} : { keyId }),
    ...(identity ? { issuer: identity.issuer } : {}),
  });
  const pollFailures = metrics.counter(
    "genmesh_auth_poll_failures_total",
    "Looks at the store's revision that failed.",
    [],
  );
  return {
    accountCreated(account) {
      accounts.of().value++;
      log.info({ accountId: account.accountId }, "account created");
    },
    accountStateSet({ accountId, suspendedAtMs }) {
      log.info({ accountId, suspended: suspendedAtMs !== undefined }, "account state set");
    },
    accountChanged: ({ accountId }) => log.info({ accountId }, "account changed"),
    accountClosing: ({ accountId }) => log.info({ accountId }, "account is being closed"),
    accountClosed: ({ accountId }) => log.info({ accountId }, "account closed"),
    keyChanged(change, key) {
      changes.of(change).value++;
      log.info({ accountId: key.accountId, keyId: key.keyId, change }, "key changed");
    },
    keyLookedUp(outcome) {
      lookUps.of(outcome).value++;
    },
    sessionBegan(session) {
      sessions.of("began").value++;
      log.info(sessionFields(session), "session began");
    },
    sessionEnded(session) {
      sessions.of("ended").value++;
      log.info(sessionFields(session), "session ended");
    },
    signInFailed() {
      sessions.of("failed").value++;
    },
    lineMissing: (error) => log.error({ err: error }, "a sign-in is not in the audit log"),
    watchersChanged(count) {
      watchers.of().value = count;
    },
    pollFailed(error, inARow) {
      pollFailures.of().value++;
      if (inARow === 1) log.warn({ err: error }, "the key store does not answer");
    },
    pollRecovered: () => log.info("the key store answers again"),
  };
}
