import type { HoldClient, KeyLimit, RequestRecord } from "#common/agreements/hold-client.ts";
import { ErrorReason, isRefusal, unavailable } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type HoldKind,
  HoldState,
  type Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { dispatchWithinMs } from "./limits.ts";

/** A request that is paid for. */
export interface PaidRequest {
  /** Also the id of its hold. */
  requestId: string;
  accountId: string;
  keyId: string;
}

/** What a request's hold is opened with. Amounts in the wallet's unit. */
export interface HoldTerms {
  /** The bound of what the request may cost. */
  amount: bigint;
  /** What its caller knows the request by, up to 100 characters; undefined: its id. */
  ref?: string | undefined;
  /** When billing asks about it, in ms since the epoch. */
  checkAt: number;
  /** Undefined: none. */
  keyLimit: KeyLimit | undefined;
  /** Where wallet or key have less than the amount, the hold takes what they have, from this on. Undefined: all of it. */
  least?: bigint | undefined;
}

/** What a request is charged, and what the journal keeps of it. */
export interface RequestCharge {
  amount: bigint;
  record: RequestRecord;
  /** Where the hold is closed without a charge, take it out of what is free. Undefined: nothing is charged then. */
  fromFree?: { keyLimit: KeyLimit | undefined } | undefined;
}

/** The holds of requests that a draw ends: one each, named after its request. All calls may be repeated. */
export interface RequestHolds {
  /**
   * Opens the hold and answers what it took. Refuses with `noHoldReasons`: then there is none, and will be none; and with
   * SERVICE_UNAVAILABLE where the request was ended meanwhile, or the outcome is unknown.
   */
  open(request: PaidRequest, terms: HoldTerms): Promise<bigint>;
  /**
   * Charges the request and ends its hold, in one step; answers what was charged, by this call or an earlier one of any
   * process. Without a charge it is the end of a request that costs nothing.
   */
  draw(request: PaidRequest, charge: RequestCharge): Promise<bigint>;
  /** Is the hold still open? Asked by a repeat of its opening, which changes nothing. */
  isOpen(request: PaidRequest, terms: HoldTerms): Promise<boolean>;
}

/** Makes them over a client of billing, for one kind of request in one unit. */
export function createRequestHolds(
  client: HoldClient,
  { kind, unit }: { kind: HoldKind; unit: Unit },
): RequestHolds {
  const holdOf = (request: PaidRequest, terms: HoldTerms) => ({
    accountId: request.accountId,
    unit,
    holdId: request.requestId,
    amount: terms.amount,
    kind,
    keyId: request.keyId,
    ref: terms.ref ?? request.requestId,
    checkTimeMs: terms.checkAt,
    keyLimit: terms.keyLimit,
    least: terms.least,
  });
  return {
    async open(request, terms) {
      try {
        return (await client.open(holdOf(request, terms))).held;
      } catch (error) {
        // Another process has taken its row over meanwhile, and drawn that it costs nothing.
        if (isRefusal(error, ErrorReason.OPERATION_CONFLICT)) throw unavailable();
        throw error;
      }
    },
    async draw({ requestId: holdId, accountId, keyId }, { amount, record, fromFree }) {
      const hold = { accountId, unit, holdId, amount };
      try {
        return await client.draw({ ...hold, keyId, record, fromFree });
      } catch (error) {
        // A billing of before draws, for as long as a rolling upgrade lasts.
        if (!isRefusal(error, ErrorReason.INVALID_ARGUMENT)) throw error;
      }
      try {
        return (await client.settle(hold)).chargedAmount;
      } catch (error) {
        if (isRefusal(error, ErrorReason.HOLD_NOT_FOUND)) return 0n;
        throw error;
      }
    },
    isOpen: async (request, terms) =>
      (await client.reserve(holdOf(request, terms))).state === HoldState.OPEN,
  };
}

/**
 * Refuses a request that may not be sent any more: more than 5 s have passed since its money was first looked for, by the
 * monotonic clock. Past its lease it could be sent without any money.
 */
export function refuseLate(openedAt: number, clock: Clock): void {
  if (clock.steady() > openedAt + dispatchWithinMs) throw unavailable();
}
