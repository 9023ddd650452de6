import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { HoldClient } from "#kit/holds.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Charge, Intent } from "./store.ts";

/** The holds of text requests: one each, in the USD wallet, under the request's own id. All calls may be repeated. */
export interface TextHolds {
  /**
   * Opens the hold, for the intent's amount or, where `least` is named, for what wallet and key have from that on; answers
   * what it took, in USD micros. Refuses with {@link noHoldReasons}: then there is none.
   */
  open(intent: Intent, terms: HoldTerms): Promise<bigint>;
  /** Ends the hold by the charge. One that was never opened counts as ended. */
  end(request: Pick<Intent, "requestId" | "accountId">, charge: Charge): Promise<void>;
  /** Is the hold still open? Asked by a repeat of its opening, which changes nothing. */
  isOpen(intent: Intent): Promise<boolean>;
}

/** What a hold depends on beside its intent. Amounts in USD micros. */
export interface HoldTerms {
  /** Of a calendar month; undefined: none. */
  keyMonthlyLimit: bigint | undefined;
  /** Undefined: the intent's amount and nothing less. */
  least: bigint | undefined;
}

/** Text's view of the holds of billing. */
export function createTextHolds(client: HoldClient): TextHolds {
  const unit = Unit.USD_MICROS;
  const reserve = (intent: Intent, { keyMonthlyLimit, least }: HoldTerms) =>
    client.reserve({
      accountId: intent.accountId,
      unit,
      holdId: intent.requestId,
      amount: intent.holdAmount,
      kind: HoldKind.TEXT,
      keyId: intent.keyId,
      ref: intent.requestId,
      checkTimeMs: intent.holdCheckAt,
      keyMonthlyLimit,
      least,
    });
  return {
    open: async (intent, terms) => (await reserve(intent, terms)).held,
    async end({ accountId, requestId: holdId }, charge) {
      try {
        if (charge.amount === undefined) await client.release({ accountId, unit, holdId });
        else await client.settle({ accountId, unit, holdId, amount: charge.amount });
      } catch (error) {
        // Its opening never arrived. Should it still come, billing asks for it and is told to release it.
        if (!isRefusal(error, ErrorReason.HOLD_NOT_FOUND)) throw error;
      }
    },
    async isOpen(intent) {
      const { state } = await reserve(intent, { keyMonthlyLimit: undefined, least: undefined });
      return state === HoldState.OPEN;
    },
  };
}
