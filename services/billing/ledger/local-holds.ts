import type { HoldOperations } from "#common/agreements/hold-client.ts";
import { applyGroup, type LedgerContext } from "./apply.ts";
import { closedMessage, openedMessage, refusalError } from "./messages.ts";
import type { Outcome } from "./operations.ts";
import { type Addressed, checkDraw, checkRelease, checkReserve, checkSettle } from "./requests.ts";

/** The operations of owners of holds for services of the same process, without a message. They refuse as those over the wire do. */
export function createLocalHolds(ledger: LedgerContext): HoldOperations {
  const apply = async <K extends Outcome["kind"]>(addressed: Addressed, kind: K) => {
    const [outcome] = await applyGroup(ledger, [addressed]);
    if (outcome?.kind === "refused") throw refusalError(outcome);
    if (outcome?.kind !== kind) throw new Error(`an operation without its outcome: ${kind}`);
    return outcome as Extract<Outcome, { kind: K }>;
  };
  return {
    async reserve(hold) {
      const { state, heldAmount } = openedMessage(await apply(checkReserve(hold), "reserved"));
      return { state, held: heldAmount };
    },
    draw: async (drawn) => (await apply(checkDraw(drawn), "drawn")).charged,
    settle: async (settled) => closedMessage(await apply(checkSettle(settled), "closed")),
    release: async (released) => closedMessage(await apply(checkRelease(released), "closed")),
  };
}
