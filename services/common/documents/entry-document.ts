// Shows changes of balances to callers, and in an operator's file with upstreams and costs. It also shows the ledger's own
// entries in the console and to scripts of the command.

import { csvLine } from "#kit/base/csv.ts";
import { type Entry, EntryKind, type Line } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { isoTime, isoTimeOrNull, unitName } from "./answer-values.ts";
import { operatorPricedDocument } from "./priced-document.ts";

/** A change of a balance, as the public API shows it. */
export function entryDocument(line: Line) {
  const { kind } = line;
  const isGrant = kind === "grant";
  const isRefund = kind === "refund";
  const unit = unitName(line.unit);
  return {
    id: `${unit}-${line.number}`,
    object: "billing.entry",
    createdAt: isoTime(line.time),
    kind: isGrant || isRefund ? kind : "charge",
    unit,
    amount: Number(line.amount),
    balanceAfter: Number(line.balance),
    keyId: line.keyId || null,
    model: line.model || null,
    requestKind: isGrant ? null : isRefund ? line.refundedKind : kind,
    request: line.id || null,
    refundOf: line.refundOf === 0n ? null : `${unit}-${line.refundOf}`,
    takeBackOf: line.takeBackOf === 0n ? null : `${unit}-${line.takeBackOf}`,
  };
}

/** The fields that are columns of a file with entries, in their order. */
export const entryColumns = [
  "id",
  "createdAt",
  "kind",
  "unit",
  "amount",
  "balanceAfter",
  "keyId",
  "model",
  "requestKind",
  "request",
  "refundOf",
  "takeBackOf",
] as const satisfies readonly (keyof ReturnType<typeof entryDocument>)[];

/** A change of a balance in an operator's file. It names the parts of the price, the upstream, and its cost. */
export function operatorEntryDocument(line: Line) {
  return { ...entryDocument(line), ...operatorPricedDocument(line.record) };
}

/** The columns of such a file, in their order. */
export const operatorEntryColumns = [
  ...entryColumns,
  "inputCacheWriteTokens",
  "inputCacheWriteLongTokens",
  "inputAudioTokens",
  "inputImageTokens",
  "outputAudioTokens",
  "outputImageTokens",
  "toolCalls",
  "priceAboveInputTokens",
  "servedTier",
  "upstream",
  "failedTries",
  "upstreamCostUsdMicros",
  "upstreamCostSource",
] as const satisfies readonly (keyof ReturnType<typeof operatorEntryDocument>)[];

/** A line of an operator's file in CSV. */
export function operatorEntryCsv(line: Line): string {
  const entry = operatorEntryDocument(line);
  const { toolCalls, failedTries } = entry;
  const cells = { ...entry, toolCalls: callsText(toolCalls), failedTries: triesText(failedTries) };
  return csvLine(operatorEntryColumns.map((name) => cells[name]));
}

/** Failed tries in one cell, the first one first: `main=key_refused main#2=rate_limited`. */
function triesText(tries: readonly { upstream: string; failure: string }[]): string {
  return tries.map(({ upstream, failure }) => `${upstream}=${failure}`).join(" ");
}

/** Calls in one cell: `file_search=1 web_search=2`. */
function callsText(calls: Record<string, number>): string {
  return Object.entries(calls)
    .map(([family, count]) => `${family}=${count}`)
    .sort()
    .join(" ");
}

const entryKinds = new Map<number, string>([
  [EntryKind.GRANT, "grant"],
  [EntryKind.HOLD, "hold"],
  [EntryKind.SETTLE, "settle"],
  [EntryKind.RELEASE, "release"],
  [EntryKind.EXTEND, "extend"],
  [EntryKind.DRAW, "draw"],
  [EntryKind.REFUND, "refund"],
]);

/** An entry of the ledger as operators see it in the console. */
export function ledgerEntryDocument(entry: Entry) {
  return {
    object: "ledger.entry",
    accountId: entry.accountId,
    unit: unitName(entry.unit),
    number: entry.number,
    kind: entryKinds.get(entry.kind) ?? "",
    holdId: entry.holdId,
    ref: entry.ref,
    freeDelta: entry.freeDelta,
    heldDelta: entry.heldDelta,
    spentDelta: entry.spentDelta,
    refundOf: entry.refundOf === 0n ? null : entry.refundOf,
    takeBackOf: entry.takeBackOf === 0n ? null : entry.takeBackOf,
    createdAt: isoTimeOrNull(entry.time),
  };
}

/** The change that an entry made to a job's hold, as the command prints it for scripts. */
export function printedEntry(entry: Entry) {
  return {
    time: isoTime(entry.time),
    operation: entry.operationId.split(":").at(-1) ?? "",
    held: entry.heldDelta,
    spent: entry.spentDelta,
  };
}
