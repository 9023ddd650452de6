// Puts holds and charges of text into billing's operations, with the record for the journal. The rest of this folder knows
// nothing of billing's protocol.

import type {
  HoldClient,
  KeyLimit,
  NewHold,
  RequestRecord,
  Reserved,
} from "#common/agreements/hold-client.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { soundUnitMs } from "../../upstreams/text/port.ts";
import type { Charge, Intent, Told } from "../store/store.ts";

/** The holds of text requests. Each request has one, in the USD wallet, under its own id. All calls may be repeated. */
export interface TextHolds {
  /**
   * Opens the hold for the intent's amount. With `least`, a smaller amount is enough, down to `least`: all that wallet and key have.
   * Answers the amount of the hold, in USD micros. Refuses with {@link noHoldReasons}: then there is no hold, and there never will be.
   * Refuses with SERVICE_UNAVAILABLE where the request was ended meanwhile, or the outcome is unknown.
   */
  open(intent: Intent, terms: HoldTerms): Promise<Reserved>;
  /**
   * Charges the request and ends its hold, in one step. Answers the amount that was charged, by this call or an earlier one of any
   * replica. Where the hold was closed without a charge, `fromFree` still charges the amount that wallet and key can pay. Without it,
   * nothing is charged then.
   */
  draw(request: DrawnRequest, charge: Charge, notes: DrawNotes): Promise<bigint>;
  /** Is the hold still open? Opening it again shows that, and changes nothing. */
  isOpen(intent: Intent): Promise<boolean>;
}

/** Terms of a hold beside its intent. Amounts are in USD micros. */
export interface HoldTerms {
  /** Undefined: the key has no limit. */
  keyLimit: KeyLimit | undefined;
  /** Undefined: nothing less than the intent's amount. */
  least: bigint | undefined;
}

/** The request that is charged. */
export type DrawnRequest = Pick<
  Intent,
  "requestId" | "accountId" | "keyId" | "modelId" | "operation" | "openedAt"
>;

/** Facts for the record of a charge. Times are in ms since the epoch. */
export interface DrawNotes {
  /** Absent: an earlier version told nothing. */
  told: Told | undefined;
  /** How the request ended. */
  status: string;
  endedAt: number;
  fromFree?: { keyLimit: KeyLimit | undefined } | undefined;
}

/** The id of a request as its caller gave it. Billing takes no longer ones. */
const refPattern = /^[\w.:-]{1,100}$/;

/** Text's view of the holds of billing. */
export function createTextHolds(client: HoldClient): TextHolds {
  return {
    open: (intent, terms) => client.open(holdOf(intent, terms)),
    draw: (request, charge, notes) =>
      client.draw({
        accountId: request.accountId,
        unit: Unit.USD_MICROS,
        holdId: request.requestId,
        keyId: request.keyId,
        amount: charge.amount ?? 0n,
        record: recordOf(request, charge, notes),
        fromFree: notes.fromFree,
      }),
    async isOpen(intent) {
      const { state } = await client.reserve(holdOf(intent, noTerms));
      return state === HoldState.OPEN;
    },
  };
}

const noTerms: HoldTerms = { keyLimit: undefined, least: undefined };

function holdOf(intent: Intent, { keyLimit, least }: HoldTerms): NewHold {
  const { requestId, told } = intent;
  return {
    accountId: intent.accountId,
    unit: Unit.USD_MICROS,
    holdId: requestId,
    amount: intent.holdAmount,
    kind: HoldKind.TEXT,
    keyId: intent.keyId,
    ref: told?.callId && refPattern.test(told.callId) ? told.callId : requestId,
    checkTimeMs: intent.holdCheckAt,
    keyLimit,
    least,
  };
}

/** The fields of a charge that no part with a price of its own has. */
const plainFields: ReadonlySet<string> = new Set<keyof Charge>([
  ...(["amount", "input", "cachedInput", "output", "reasoning", "estimated"] as const),
]);

function hasPricedParts(charge: Charge): boolean {
  for (const name in charge) if (!plainFields.has(name)) return true;
  return false;
}

function pricedPartsOf(charge: Charge): NonNullable<RequestRecord["priced"]> {
  const { cacheWrite = 0, cacheWriteLong = 0, audioInput, imageInput } = charge;
  const { audioOutput, imageOutput, toolCalls, priceAbove, servedTier } = charge;
  const { upstreamCost, upstreamCostSource } = charge;
  return {
    inputCacheWriteTokens: cacheWrite + cacheWriteLong,
    inputCacheWriteLongTokens: cacheWriteLong,
    inputAudioTokens: audioInput,
    inputImageTokens: imageInput,
    outputAudioTokens: audioOutput,
    outputImageTokens: imageOutput,
    priceAboveInputTokens: priceAbove,
    ...{ toolCalls, servedTier, upstreamCostSource },
    upstreamCostUsdMicros: upstreamCost === undefined ? undefined : Number(upstreamCost),
  };
}

/** The journal's record of a request. It holds nothing that its caller wrote. */
function recordOf(
  request: DrawnRequest,
  charge: Charge,
  { told = {}, status, endedAt }: DrawNotes,
): RequestRecord {
  const isSound = request.operation === "transcriptions";
  return {
    model: request.modelId,
    operation: request.operation,
    status,
    streamed: told.streamed,
    estimated: charge.estimated,
    upstream: told.upstream,
    answerId: told.answerId,
    requestId: told.callId,
    finishReason: told.finishReason,
    failure: told.failure,
    failedTries: told.failedTries,
    inputTokens: isSound ? 0 : charge.input,
    mediaMs: isSound ? charge.input * soundUnitMs : 0,
    cachedInputTokens: charge.cachedInput,
    outputTokens: charge.output,
    reasoningTokens: charge.reasoning,
    startMs: request.openedAt,
    firstOutputMs: told.firstOutputAt,
    endMs: endedAt,
    ...(hasPricedParts(charge) && { priced: pricedPartsOf(charge) }),
  };
}
