// Turns wallets, holds, entries and outcomes into messages of the wire, and an entry's record into its stored text and back.
// `requests.ts` goes the other way.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  RequestFailure as AgreedFailure,
  RequestRecord as AgreedRecord,
  FailedTry as AgreedTry,
} from "#common/agreements/hold-client.ts";
import { pricedMessage, pricedText } from "#common/agreements/priced-record.ts";
import { RefusalError } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import {
  EntryKind,
  type Entry as EntryMessage,
  EntrySchema,
  HoldKind,
  type Hold as HoldMessage,
  HoldSchema,
  HoldState,
  type Outcome as OutcomeMessage,
  OutcomeSchema,
  type RequestRecord,
  RequestRecordSchema,
  Unit,
  type Wallet as WalletMessage,
  WalletSchema,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Outcome, Refused } from "./operations.ts";
import type { WalletHold } from "./store.ts";
import {
  chargeTold,
  type Entry,
  type EntryKind as EntryKindName,
  type HoldKind as HoldKindName,
  spentThisMonth,
  takeBackOf,
  type Unit as UnitName,
  type Wallet,
  type WalletRef,
} from "./wallet.ts";

const units: Record<UnitName, Unit> = { usd_micros: Unit.USD_MICROS, credits: Unit.CREDITS };
const holdKinds: Record<HoldKindName, HoldKind> = {
  text: HoldKind.TEXT,
  speech: HoldKind.SPEECH,
  job: HoldKind.JOB,
};
const entryKinds: Record<EntryKindName, EntryKind> = {
  grant: EntryKind.GRANT,
  hold: EntryKind.HOLD,
  settle: EntryKind.SETTLE,
  release: EntryKind.RELEASE,
  extend: EntryKind.EXTEND,
  draw: EntryKind.DRAW,
  refund: EntryKind.REFUND,
};
/** The states of a hold on the wire. */
export const holdStates: Record<"open" | "settled" | "released", HoldState> = {
  open: HoldState.OPEN,
  settled: HoldState.SETTLED,
  released: HoldState.RELEASED,
};

/** The wire's unit. */
export function unitMessage(unit: UnitName): Unit {
  return units[unit];
}

/** The wire's state of a hold. */
export function holdStateMessage(state: "open" | "settled" | "released"): HoldState {
  return holdStates[state];
}

/** A wallet's message at `now` (ms since the epoch). */
export function walletMessage(wallet: Wallet, now: number): WalletMessage {
  return create(WalletSchema, {
    unit: units[wallet.unit],
    available: wallet.free + wallet.held,
    reserved: wallet.held,
    spendable: wallet.free,
    monthSpent: spentThisMonth(wallet, now),
    granted: wallet.granted,
    spent: wallet.spent,
  });
}

/** An open hold's message. */
export function holdMessage(hold: WalletHold): HoldMessage {
  return create(HoldSchema, {
    holdId: hold.holdId,
    accountId: hold.wallet.accountId,
    unit: units[hold.wallet.unit],
    amount: hold.amount,
    kind: holdKinds[hold.holdKind],
    keyId: hold.keyId,
    ref: hold.ref,
    openTime: timestampFromMs(hold.openedAt),
    checkTime: timestampFromMs(hold.checkAt),
  });
}

/** An entry's message. */
export function entryMessage(wallet: WalletRef, entry: Entry): EntryMessage {
  return create(EntrySchema, {
    accountId: wallet.accountId,
    unit: units[wallet.unit],
    number: BigInt(entry.n),
    operationId: entry.operationId,
    kind: entryKinds[entry.kind],
    holdId: entry.holdId,
    freeDelta: entry.freeDelta,
    heldDelta: entry.heldDelta,
    spentDelta: entry.spentDelta,
    ref: entry.ref,
    time: timestampFromMs(entry.at),
    hash: entry.hash,
    ...(entry.kind !== "refund" && entry.kind !== "grant" && entry.record !== ""
      ? { record: recordMessage(entry.record) }
      : {}),
    refundOf: BigInt(chargeTold(entry)?.refundOf ?? 0),
    takeBackOf: BigInt(takeBackOf(entry) ?? 0),
  });
}

/** An entry's record of a request, as JSON with the wire's names. */
export function recordText(record: AgreedRecord): string {
  const { characters = 0, images = 0, mediaMs = 0 } = record;
  return JSON.stringify({
    model: record.model ?? "",
    operation: record.operation ?? "",
    status: record.status ?? "",
    streamed: record.streamed ?? false,
    estimated: record.estimated ?? false,
    upstream: record.upstream ?? "",
    inputTokens: record.inputTokens ?? 0,
    cachedInputTokens: record.cachedInputTokens ?? 0,
    outputTokens: record.outputTokens ?? 0,
    reasoningTokens: record.reasoningTokens ?? 0,
    startMs: record.startMs,
    firstOutputMs: record.firstOutputMs,
    endMs: record.endMs,
    // Only where there are any: most requests are text.
    characters: characters > 0 ? characters : undefined,
    images: images > 0 ? images : undefined,
    mediaMs: mediaMs > 0 ? mediaMs : undefined,
    answerId: record.answerId || undefined,
    requestId: record.requestId || undefined,
    finishReason: record.finishReason || undefined,
    priced: record.priced && pricedText(record.priced),
    failure: record.failure && failureText(record.failure),
    failedTries: record.failedTries?.length ? record.failedTries.map(tryText) : undefined,
  });
}

function tryText({ lane, kind, status }: AgreedTry) {
  return { lane, kind, status: status || undefined };
}

function failureText({ code, upstreamKind, upstreamStatus }: AgreedFailure) {
  return {
    code,
    upstreamKind: upstreamKind || undefined,
    upstreamStatus: upstreamStatus || undefined,
  };
}

/** The record of a {@link recordText}. A missing field has its default. */
export function recordMessage(text: string): RequestRecord {
  const told: JsonValue = JSON.parse(text);
  const fields = isJsonObject(told) ? told : {};
  const count = (value: JsonValue | undefined) => BigInt(Math.trunc(Number(value ?? 0)));
  const time = (value: JsonValue | undefined) =>
    typeof value === "number" ? timestampFromMs(value) : undefined;
  const [startTime, firstOutputTime] = [time(fields.startMs), time(fields.firstOutputMs)];
  const endTime = time(fields.endMs);
  return create(RequestRecordSchema, {
    model: String(fields.model ?? ""),
    operation: String(fields.operation ?? ""),
    status: String(fields.status ?? ""),
    streamed: fields.streamed === true,
    estimated: fields.estimated === true,
    upstream: String(fields.upstream ?? ""),
    inputTokens: count(fields.inputTokens),
    cachedInputTokens: count(fields.cachedInputTokens),
    outputTokens: count(fields.outputTokens),
    reasoningTokens: count(fields.reasoningTokens),
    characters: count(fields.characters),
    images: count(fields.images),
    mediaMs: count(fields.mediaMs),
    answerId: String(fields.answerId ?? ""),
    requestId: String(fields.requestId ?? ""),
    finishReason: String(fields.finishReason ?? ""),
    ...(isJsonObject(fields.priced) ? { priced: pricedMessage(fields.priced) } : {}),
    ...(isJsonObject(fields.failure) ? { failure: failureMessage(fields.failure) } : {}),
    failedTries: triesIn(fields.failedTries),
    ...(startTime ? { startTime } : {}),
    ...(firstOutputTime ? { firstOutputTime } : {}),
    ...(endTime ? { endTime } : {}),
  });
}

function failureMessage({ code, upstreamKind, upstreamStatus }: JsonObject) {
  return {
    code: String(code ?? ""),
    upstreamKind: String(upstreamKind ?? ""),
    upstreamStatus: Number(upstreamStatus ?? 0),
  };
}

function triesIn(told: JsonValue | undefined) {
  if (!Array.isArray(told)) return [];
  return told.filter(isJsonObject).map(({ lane, kind, status }) => ({
    lane: String(lane ?? ""),
    kind: String(kind ?? ""),
    status: Number(status ?? 0),
  }));
}

/** The message of an opened hold. */
export function openedMessage({ state, held, replayed }: Extract<Outcome, { kind: "reserved" }>) {
  return { state: holdStates[state], heldAmount: held, replayed };
}

/** The message of an ended hold. */
export function closedMessage({ state, charged, replayed }: Extract<Outcome, { kind: "closed" }>) {
  return { state: holdStates[state], chargedAmount: charged, replayed };
}

/** A refusal's error, with the registry's text. */
export function refusalError({ reason, metadata }: Refused): RefusalError {
  return new RefusalError(reason, { metadata });
}

/** An outcome of one operation among several. `operation` tells the answers of closing operations apart. */
export function outcomeMessage(operation: string | undefined, outcome: Outcome): OutcomeMessage {
  switch (outcome.kind) {
    case "refused": {
      const { reason, message, metadata } = refusalError(outcome);
      return create(OutcomeSchema, {
        outcome: { case: "refusal", value: { reason, message, metadata: { ...metadata } } },
      });
    }
    case "reserved":
      return create(OutcomeSchema, {
        outcome: { case: "reserve", value: openedMessage(outcome) },
      });
    case "closed": {
      const value = closedMessage(outcome);
      return create(OutcomeSchema, {
        outcome: { case: operation === "settle" ? "settle" : "release", value },
      });
    }
    case "drawn": {
      const value = { chargedAmount: outcome.charged, replayed: outcome.replayed };
      return create(OutcomeSchema, { outcome: { case: "draw", value } });
    }
    case "granted":
    case "refunded":
    case "takenBack":
    case "extended":
      throw new Error(`no ${outcome.kind} outcome travels among others`);
  }
}
