// Logs and counts what happens in billing, all of it in this one place, so that lines and metrics have one form.

import { ErrorReason, isRefusal, reasonName } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Difference } from "../ledger/audit.ts";
import type { Operation, Outcome } from "../ledger/operations.ts";
import type { WalletHold } from "../ledger/store.ts";
import type { Unit, WalletRef } from "../ledger/wallet.ts";

/** The service that is asked about a hold. */
export type Owner = "text" | "media";
/** The result of asking. `failed`: the owner has a fault with this hold. `away`: with all of them. */
export type Verdict = "keep" | "settle" | "release" | "failed" | "away";

/** The business events of billing, which are logged and counted only here. None of these throws. */
export interface BillingEvents {
  /** Operations of a wallet have their outcomes. */
  operations(
    wallet: WalletRef,
    operations: readonly Operation[],
    outcomes: readonly Outcome[],
  ): void;
  /** A wallet's transition lost to another process, and is tried again. */
  conflict(unit: Unit): void;
  /** A wallet's transition failed with an error that the code does not know. Answers the id under which it was logged. */
  applyFailed(wallet: WalletRef, error: unknown): string;
  /** The operator ended a hold. */
  holdEnded(
    wallet: WalletRef,
    holdId: string,
    state: "settled" | "released",
    charged: bigint,
  ): void;
  /** The owner of a hold was asked, because the hold's check time had passed. */
  ownerAsked(owner: Owner, verdict: Verdict, hold: WalletHold, error?: unknown): void;
  /** How long the oldest of all open holds has been open, in ms. 0 where none is. */
  oldestHold(ageMs: number): void;
  /** So many wallets have entries that this process has yet to count. */
  uncounted(wallets: number): void;
  /** A whole sweep for holds failed. */
  sweepFailed(error: unknown): void;
  /** A wallet's journal (undefined: it is unknown which) could not be added up in the background. */
  countingFailed(wallet: WalletRef | undefined, error: unknown): void;
  /** An alert of an account ("": it is unknown which) could not be written down, or deleted. */
  alertFailed(accountId: string, error: unknown): void;
  /** Alerts are left out, because too many of their account are kept. */
  alertsLeftOut(accountId: string, count: number): void;
  /** A monthly grant of an account ("": it is unknown which) could not be given. It is tried again. */
  monthlyGrantFailed(accountId: string, error: unknown): void;
  /** An audit found something. */
  auditDifference(wallet: WalletRef, difference: Difference): void;
}

/** The store watch reports a store that is away once. The failed work is tried again. */
function levelOf(error: unknown): "debug" | "error" {
  return isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE) ? "debug" : "error";
}

/** Makes the events of one service. */
export function createBillingEvents(deps: {
  log: Logger;
  metrics: Metrics;
  ids: Ids;
  clock: Clock;
}): BillingEvents {
  const { log, metrics, ids, clock } = deps;
  const count = createCounters(metrics);
  return {
    operations(wallet, operations, outcomes) {
      for (const [at, outcome] of outcomes.entries()) {
        const operation = operations[at];
        if (!operation) continue;
        if (outcome.kind === "refused") tellRefused({ log, count }, wallet, operation, outcome);
        else tellDone({ log, count }, wallet, operation, outcome);
      }
    },
    conflict(unit) {
      count.conflicts.of(unit).value++;
    },
    applyFailed(wallet, error) {
      const incident = ids.make("incident", 12);
      log.error({ err: error, incident, ...wallet }, "ledger operation failed");
      return incident;
    },
    holdEnded(wallet, holdId, state, charged) {
      log.info({ ...wallet, holdId, state, charged: `${charged}` }, "hold ended by the operator");
    },
    ownerAsked(owner, verdict, hold, error) {
      count.asked.of(owner, verdict).value++;
      count.ages.of(owner).observe(Math.max(0, clock.now() - hold.openedAt) / 1_000);
      const facts = { owner, verdict, ...hold.wallet, holdId: hold.holdId, ref: hold.ref };
      if (verdict === "failed" || verdict === "away") {
        log.warn({ ...facts, err: error }, "owner of a hold gave no verdict");
      } else if (verdict !== "keep") {
        log.info(facts, "hold ended by its owner's verdict");
      }
    },
    oldestHold(ageMs) {
      count.oldest.of().value = ageMs / 1_000;
    },
    uncounted(wallets) {
      count.uncounted.of().value = wallets;
    },
    sweepFailed(error) {
      log[levelOf(error)]({ err: error }, "holds could not be read");
    },
    countingFailed(wallet, error) {
      log[levelOf(error)]({ err: error, ...wallet }, "usage could not be counted");
    },
    alertFailed(accountId, error) {
      log[levelOf(error)]({ err: error, accountId }, "an alert could not be kept");
    },
    alertsLeftOut(accountId, count) {
      log.warn({ accountId, count }, "an account has too many alerts, and is not told more");
    },
    monthlyGrantFailed(accountId, error) {
      log[levelOf(error)]({ err: error, accountId }, "a monthly grant could not be given");
    },
    auditDifference(wallet, difference) {
      count.differences.of(difference.field).value++;
      log.error({ ...wallet, ...difference }, "ledger audit found a difference");
    },
  };
}

/** The log and counters for an operation. */
interface Told {
  log: Logger;
  count: ReturnType<typeof createCounters>;
}

type Refused = Extract<Outcome, { kind: "refused" }>;

function tellRefused({ log, count }: Told, wallet: WalletRef, { kind }: Operation, told: Refused) {
  const { reason, metadata } = told;
  count.refusals.of(kind, reasonName(reason)).value++;
  if (!strange.has(reasonName(reason))) return;
  const facts = { ...wallet, operation: kind, reason: reasonName(reason) };
  log.warn({ ...facts, metadata }, "billing operation refused");
}

function tellDone(
  { log, count }: Told,
  wallet: WalletRef,
  operation: Operation,
  outcome: Exclude<Outcome, Refused>,
): void {
  const { unit } = wallet;
  if (outcome.replayed) {
    count.operations.of(unit, operation.kind, "replayed").value++;
    return;
  }
  count.operations.of(unit, operation.kind, "done").value++;
  if (operation.kind === "grant") {
    count.money.of(unit, "granted").value += Number(operation.amount);
    const { amount, grantId } = operation;
    log.info({ ...wallet, amount: `${amount}`, operationId: grantId }, "funds granted");
  }
  if (outcome.kind === "refunded") {
    count.money.of(unit, "refunded").value += Number(outcome.amount);
    const { amount, entry } = outcome;
    log.info({ ...wallet, amount: `${amount}`, entry }, "charge given back");
  }
  if (outcome.kind === "takenBack") {
    count.money.of(unit, "taken_back").value += Number(outcome.amount);
    const { amount, entry } = outcome;
    log.info({ ...wallet, amount: `${amount}`, entry }, "grant taken back");
  }
  if (outcome.kind === "reserved") count.money.of(unit, "held").value += Number(outcome.held);
  if (outcome.kind === "drawn") count.money.of(unit, "charged").value += Number(outcome.charged);
  if (outcome.kind === "closed") {
    count.money.of(unit, "charged").value += Number(outcome.charged);
    if (operation.kind === "settle" && operation.amount > outcome.charged) {
      const facts = { holdId: operation.holdId, asked: `${operation.amount}` };
      log.warn({ ...wallet, ...facts, charged: `${outcome.charged}` }, "settlement cut to hold");
    }
  }
}

/** Refusals that no correct caller gets. */
const strange = new Set(["OPERATION_MISMATCH", "OPERATION_CONFLICT", "INVALID_ARGUMENT"]);

/** Seconds, from a long request to a hold that stays open for days. */
const ageBuckets = [60, 300, 900, 1_800, 3_600, 21_600, 86_400, 604_800];

function createCounters(metrics: Metrics) {
  const operations = metrics.counter(
    "genmesh_billing_operations_total",
    "Operations by unit, kind and whether they changed something or were known already",
    ["unit", "operation", "outcome"],
  );
  const refusals = metrics.counter(
    "genmesh_billing_refusals_total",
    "Operations refused, by kind and reason",
    ["operation", "reason"],
  );
  const money = metrics.counter(
    "genmesh_billing_amount_total",
    "USD micros or credits granted, set aside in holds, charged, given back and taken back; a rate, not the books",
    ["unit", "flow"],
  );
  const asked = metrics.counter(
    "genmesh_billing_owner_checks_total",
    "Owners asked about holds whose check time had passed, by verdict",
    ["owner", "verdict"],
  );
  const ages = metrics.histogram(
    "genmesh_billing_checked_hold_age_seconds",
    "Age of the holds whose owners were asked about them",
    ["owner"],
    ageBuckets,
  );
  const oldest = metrics.gauge(
    "genmesh_billing_oldest_hold_seconds",
    "Age of the oldest open hold of all wallets, 0 where none is open",
    [],
  );
  const uncounted = metrics.gauge(
    "genmesh_billing_wallets_uncounted",
    "Wallets with entries that this process has yet to count as usage, after each round of counting",
    [],
  );
  const conflicts = metrics.counter(
    "genmesh_billing_conflicts_total",
    "Transitions of wallets that another process overtook, and that went again",
    ["unit"],
  );
  const differences = metrics.counter(
    "genmesh_billing_audit_differences_total",
    "Differences that audits found",
    ["field"],
  );
  return { operations, refusals, money, asked, ages, oldest, uncounted, conflicts, differences };
}
