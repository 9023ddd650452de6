import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { HoldClient } from "#kit/holds.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Charge, Intent } from "./store.ts";

/** The holds of text requests: one each, in the USD wallet, under the request's own id. All calls may be repeated. */
export interface TextHolds {
  /** Opens the hold. Refuses with INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED or RATE_LIMIT_EXCEEDED: then there is none. */
  open(intent: Intent, keyMonthlyLimit: bigint | undefined): Promise<void>;
  /** Ends the hold by the charge. One that was never opened counts as ended. */
  end(request: Pick<Intent, "requestId" | "accountId">, charge: Charge): Promise<void>;
  /** Is the hold still open? Asked by a repeat of its opening, which changes nothing. */
  isOpen(intent: Intent): Promise<boolean>;
}

/** The reasons with which billing refuses a hold for good. */
export const noHoldReasons = [
  ErrorReason.INSUFFICIENT_BALANCE,
  ErrorReason.KEY_LIMIT_EXCEEDED,
  ErrorReason.RATE_LIMIT_EXCEEDED,
] as const;

/** Text's view of the holds of billing. */
export function createTextHolds(client: HoldClient): TextHolds {
  const unit = Unit.USD_MICROS;
  const reserve = (intent: Intent, keyMonthlyLimit: bigint | undefined) =>
    client.reserve({
      accountId: intent.accountId,
      unit,
      holdId: intent.requestId,
      amount: intent.holdAmount,
      kind: HoldKind.TEXT,
      keyId: intent.keyId,
      ref: intent.requestId,
      checkTimeMs: intent.holdCheckAt,
      ...(keyMonthlyLimit === undefined ? {} : { keyMonthlyLimit }),
    });
  return {
    async open(intent, keyMonthlyLimit) {
      await reserve(intent, keyMonthlyLimit);
    },
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
      const { state } = await reserve(intent, undefined);
      return state === HoldState.OPEN;
    },
  };
}
