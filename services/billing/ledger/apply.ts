// Hands operations to the ledger's store, alone or many at once, and reports each outcome as an event. The methods and the
// sweeper change money only by this. `ledger.ts` decides the outcomes.

import type { HoldOperations } from "#common/agreements/hold-client.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { ErrorReason, isRefusal, type RefusalError } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Operation as OperationMessage } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { BillingEvents } from "../base/events.ts";
import { maxApplyOperations } from "../base/limits.ts";
import { closedMessage, holdStates, refusalError } from "./messages.ts";
import type { Operation, Outcome, Refused } from "./operations.ts";
import {
  type Addressed,
  broken,
  checkDraw,
  checkRelease,
  checkReserve,
  checkSettle,
  readOperation,
} from "./requests.ts";
import type { LedgerStore } from "./store.ts";
import { type WalletRef, walletName } from "./wallet.ts";

/** The parts that the ledger's operations need. */
export interface LedgerContext {
  store: LedgerStore;
  clock: Clock;
  events: BillingEvents;
  /** Called with the outcomes of a transition when they are durable. Its caller waits for the result: the outcomes to go by. */
  told(
    wallet: WalletRef,
    operations: readonly Operation[],
    outcomes: Outcome[],
    now: number,
  ): Awaitable<Outcome[]>;
}

/** Applies operations of one wallet. `answered` gets their outcomes, and `failed` the error where there are none. */
function applyAll<T>(
  { store, clock, told }: LedgerContext,
  wallet: WalletRef,
  operations: readonly Operation[],
  answered: (outcomes: Outcome[]) => T,
  failed: (error: unknown) => T,
): Promise<T> {
  const now = clock.now();
  return store.apply(wallet, operations, now).then((durable) => {
    const outcomes = told(wallet, operations, durable, now);
    return outcomes instanceof Promise ? outcomes.then(answered, failed) : answered(outcomes);
  }, failed);
}

/** Applies one operation. Throws its refusal. */
export function applyOne(
  ledger: LedgerContext,
  { wallet, operation }: Addressed,
): Promise<Exclude<Outcome, Refused>> {
  const answered = ([outcome]: Outcome[]) => {
    if (!outcome) throw new Error("an operation without an outcome");
    if (outcome.kind === "refused") throw refusalError(outcome);
    return outcome;
  };
  return applyAll(ledger, wallet, [operation], answered, (error) => {
    throw error;
  });
}

/**
 * Applies operations of any wallets in their order, each with its own outcome. One that is malformed, or whose wallet's transition
 * fails, is refused alone. Refuses as a whole only where there are none or too many.
 */
export async function applyEach(
  ctx: LedgerContext,
  messages: readonly OperationMessage[],
): Promise<Outcome[]> {
  if (messages.length === 0 || messages.length > maxApplyOperations) broken("operations");
  const outcomes: Outcome[] = [];
  const sound: { at: number; addressed: Addressed }[] = [];
  for (const [at, message] of messages.entries()) {
    try {
      sound.push({ at, addressed: readOperation(message) });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      outcomes[at] = refusedBy(error);
    }
  }
  const groups = Map.groupBy(sound, ({ addressed }) => walletName(addressed.wallet));
  await Promise.all(
    [...groups.values()].map(async (group) => {
      const operations = group.map(({ addressed }) => addressed.operation);
      const wallet = group[0]?.addressed.wallet;
      const results = wallet ? await applyGroup(ctx, wallet, operations) : [];
      for (const [i, { at }] of group.entries()) {
        const outcome = results[i];
        if (outcome) outcomes[at] = outcome;
      }
    }),
  );
  return outcomes;
}

/** Applies operations of one wallet. Where their transition fails, all of them are refused. */
function applyGroup(
  ledger: LedgerContext,
  wallet: WalletRef,
  operations: readonly Operation[],
): Promise<Outcome[]> {
  const answered = (outcomes: Outcome[]) => outcomes;
  return applyAll(ledger, wallet, operations, answered, (error) => {
    const refused = failed(error, wallet, ledger);
    return operations.map(() => refused);
  });
}

function failed(error: unknown, wallet: WalletRef, { events }: LedgerContext): Refused {
  if (isRefusal(error)) return refusedBy(error);
  const metadata = { incident: events.applyFailed(wallet, error) };
  return { kind: "refused", reason: ErrorReason.INTERNAL_ERROR, metadata };
}

function refusedBy({ reason, metadata }: RefusalError): Refused {
  return { kind: "refused", reason, metadata: { ...metadata } };
}

/** The operations of owners of holds for services of the same process, without a message. They refuse as those over the wire do. */
export function createLocalHolds(ledger: LedgerContext): HoldOperations {
  const apply = <I, K extends Outcome["kind"], T>(
    check: (asked: I) => Addressed,
    asked: I,
    kind: K,
    answer: (outcome: Extract<Outcome, { kind: K }>) => T,
  ): Promise<T> => {
    try {
      const { wallet, operation } = check(asked);
      const answered = ([outcome]: Outcome[]) => {
        if (outcome?.kind === "refused") throw refusalError(outcome);
        if (outcome?.kind !== kind) throw new Error(`an operation without its outcome: ${kind}`);
        return answer(outcome as Extract<Outcome, { kind: K }>);
      };
      return applyAll(ledger, wallet, [operation], answered, (error) => {
        throw refusalError(failed(error, wallet, ledger));
      });
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    reserve: (hold) =>
      apply(checkReserve, hold, "reserved", (opened) => ({
        state: holdStates[opened.state],
        held: opened.held,
      })),
    draw: (drawn) => apply(checkDraw, drawn, "drawn", ({ charged }) => charged),
    settle: (settled) => apply(checkSettle, settled, "closed", closedMessage),
    release: (released) => apply(checkRelease, released, "closed", closedMessage),
  };
}
