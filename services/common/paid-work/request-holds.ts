// Opens the hold of a request for text or speech, and ends it by a charge. It adds to the client of billing what such requests
// have in common: one hold each, under the request's own id. Jobs have holds of another form.

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

/** The terms of a request's hold. Amounts are in the wallet's unit. */
export interface HoldTerms {
  /** The upper bound of the request's cost. */
  amount: bigint;
  /** The caller's name for the request, up to 100 characters. Undefined: its id. */
  ref?: string | undefined;
  /** When billing asks about it, in ms since the epoch. */
  checkAt: number;
  /** Undefined: none. */
  keyLimit: KeyLimit | undefined;
  /**
   * The least amount that the hold may take, where wallet or key have less than the amount. It then takes what they have. Undefined:
   * all of it.
   */
  least?: bigint | undefined;
}

/** A request's charge, and its record in the journal. */
export interface RequestCharge {
  amount: bigint;
  record: RequestRecord;
  /** Where the hold is closed without a charge, the charge is taken from the free balance. Undefined: nothing is charged then. */
  fromFree?: { keyLimit: KeyLimit | undefined } | undefined;
}

/** The holds of requests that `draw` ends: one for each request, named after it. All calls may be repeated. */
export interface RequestHolds {
  /**
   * Opens the hold and answers the amount that it took. Refuses with `noHoldReasons`: then there is no hold, and there never will be.
   * Refuses with SERVICE_UNAVAILABLE where the request was ended meanwhile, or the outcome is unknown.
   */
  open(request: PaidRequest, terms: HoldTerms): Promise<bigint>;
  /**
   * Charges the request and ends its hold, in one step. Answers what was charged, by this call or an earlier one of any process. Where
   * nothing is charged, this ends a request that costs nothing.
   */
  draw(request: PaidRequest, charge: RequestCharge): Promise<bigint>;
  /** Is the hold still open? Checked by repeating its opening, which changes nothing. */
  isOpen(request: PaidRequest, terms: HoldTerms): Promise<boolean>;
}

/** Makes request holds over a client of billing, for one kind of request in one unit. */
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
    open: (request, terms) =>
      client.open(holdOf(request, terms)).then(
        ({ held }) => held,
        (error) => {
          // Another process has taken over the request's row meanwhile, and ended the request without a charge.
          throw isRefusal(error, ErrorReason.OPERATION_CONFLICT) ? unavailable() : error;
        },
      ),
    draw: ({ requestId, accountId, keyId }, charge) =>
      client.draw({ accountId, unit, holdId: requestId, keyId, ...charge }),
    isOpen: async (request, terms) =>
      (await client.reserve(holdOf(request, terms))).state === HoldState.OPEN,
  };
}

/**
 * Refuses a request that may not be sent any more. More than 5 s have passed since its money was first checked, by the monotonic clock.
 * Past its lease it could be sent without any money.
 */
export function refuseLate(openedAt: number, clock: Clock): void {
  if (clock.steady() > openedAt + dispatchWithinMs) throw unavailable();
}
