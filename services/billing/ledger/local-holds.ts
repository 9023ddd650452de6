import type { HoldOperations } from "#common/agreements/hold-client.ts";
import { applyGroup, type LedgerContext } from "./apply.ts";
import { closedMessage, holdStates, refusalError } from "./messages.ts";
import type { Outcome } from "./operations.ts";
import { type Addressed, checkDraw, checkRelease, checkReserve, checkSettle } from "./requests.ts";

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
      return applyGroup(ledger, wallet, [operation]).then(([outcome]) => {
        if (outcome?.kind === "refused") throw refusalError(outcome);
        if (outcome?.kind !== kind) throw new Error(`an operation without its outcome: ${kind}`);
        return answer(outcome as Extract<Outcome, { kind: K }>);
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
