// Checks messages of the wire, and calls from the same process, before the ledger sees them. Each becomes a well-formed
// operation, or is refused with the field at fault. `messages.ts` goes the other way.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type {
  KeyLimit as AgreedKeyLimit,
  Drawn,
  NewHold,
  Released,
  RequestRecord,
  Settled,
} from "#common/agreements/hold-client.ts";
import { pricedOf } from "#common/agreements/priced-record.ts";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";
import {
  type DrawRequest,
  type EndHoldRequest,
  type GrantRequest,
  HoldKind,
  type Operation as OperationMessage,
  type RefundRequest,
  type ReleaseRequest,
  type ReserveRequest,
  type SettleRequest,
  type TakeBackRequest,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import {
  defaultPageSize,
  grantIdPattern,
  holdIdPattern,
  maxAmount,
  maxEntryNumber,
  maxGrantAmount,
  maxPageSize,
  maxRecordLength,
  maxTimeMs,
  refPattern,
} from "../base/limits.ts";
import type { LimitPeriod } from "../base/periods.ts";
import { recordText } from "./messages.ts";
import type {
  Draw,
  Grant,
  Operation,
  Refund,
  Release,
  Reserve,
  Settle,
  TakeBack,
} from "./operations.ts";
import type { HoldKind as HoldKindName, KeyLimit, WalletRef } from "./wallet.ts";

/** An operation and its wallet. */
export interface Addressed<O extends Operation = Operation> {
  wallet: WalletRef;
  operation: O;
}

const holdKinds: Partial<Record<HoldKind, HoldKindName>> = {
  [HoldKind.TEXT]: "text",
  [HoldKind.SPEECH]: "speech",
  [HoldKind.JOB]: "job",
};

/** Checks a hold that is to be opened. This and its neighbours refuse with INVALID_ARGUMENT, and name the field. */
export function checkReserve(hold: NewHold): Addressed<Reserve> {
  const wallet = readWallet(hold);
  const holdId = readHoldId(hold.holdId);
  const amount = readAmount("amount", hold.amount, 0n, maxAmount);
  const holdKind = holdKinds[hold.kind] ?? broken("kind");
  const { keyId, ref, checkTimeMs, least } = hold;
  if (!accountOrKeyIdPattern.test(keyId)) broken("key_id");
  if (!refPattern.test(ref)) broken("ref");
  if (!(checkTimeMs >= 0 && checkTimeMs <= maxTimeMs)) broken("check_time");
  const keyLimit = checkKeyLimit(hold.keyLimit);
  if (least !== undefined) readAmount("least_amount", least, 0n, amount);
  return {
    wallet,
    operation: {
      kind: "reserve",
      holdId,
      amount,
      holdKind,
      keyId,
      ref,
      // A timestamp may have microseconds. The ledger counts whole ms.
      checkAt: Math.floor(checkTimeMs),
      keyLimit,
      least,
    },
  };
}

/** Checks a request to open a hold. */
export function readReserve(message: ReserveRequest): Addressed<Reserve> {
  const { accountId, unit, holdId, amount, kind, keyId, ref, checkTime, leastAmount } = message;
  return checkReserve({
    ...{ accountId, unit, holdId, amount, kind, keyId, ref },
    checkTimeMs: checkTime ? timestampMs(checkTime) : Number.NaN,
    keyLimit: keyLimitOf(message),
    least: leastAmount,
  });
}

const periods: Readonly<Record<KeyLimitReset, LimitPeriod>> = {
  // Older peers, without other periods, send none.
  [KeyLimitReset.UNSPECIFIED]: "month",
  [KeyLimitReset.DAILY]: "day",
  [KeyLimitReset.WEEKLY]: "week",
  [KeyLimitReset.MONTHLY]: "month",
  [KeyLimitReset.NEVER]: "ever",
};

function checkKeyLimit(limit: AgreedKeyLimit | undefined): KeyLimit | undefined {
  if (!limit) return undefined;
  const amount = readAmount("key_monthly_limit", limit.usdMicros, 0n, maxAmount);
  return { amount, period: periods[limit.reset] ?? broken("key_limit_reset") };
}

function keyLimitOf(message: ReserveRequest | DrawRequest): AgreedKeyLimit | undefined {
  const { keyMonthlyLimit: usdMicros, keyLimitReset: reset } = message;
  return usdMicros === undefined ? undefined : { usdMicros, reset };
}

/** Checks a hold that ends with a charge. */
export function checkSettle(settled: Settled): Addressed<Settle> {
  const wallet = readWallet(settled);
  const holdId = readHoldId(settled.holdId);
  const amount = readAmount("amount", settled.amount, 0n, maxAmount);
  const record = checkRecord(settled.record);
  return { wallet, operation: { kind: "settle", holdId, amount, record } };
}

/** Checks a hold that ends without a charge. */
export function checkRelease(released: Released): Addressed<Release> {
  const wallet = readWallet(released);
  const holdId = readHoldId(released.holdId);
  return { wallet, operation: { kind: "release", holdId, record: checkRecord(released.record) } };
}

/** An entry's record of a request, as text. Empty where there is none. */
function checkRecord(told: RequestRecord | undefined): string {
  const record = told ? recordText(told) : "";
  return record.length > maxRecordLength ? broken("record") : record;
}

/** Checks a request's charge. */
export function checkDraw(drawn: Drawn): Addressed<Draw> {
  const wallet = readWallet(drawn);
  const holdId = readHoldId(drawn.holdId);
  const amount = readAmount("amount", drawn.amount, 0n, maxAmount);
  const { keyId, fromFree } = drawn;
  if (!accountOrKeyIdPattern.test(keyId)) broken("key_id");
  const keyLimit = checkKeyLimit(fromFree?.keyLimit);
  const record = checkRecord(drawn.record);
  return {
    wallet,
    operation: {
      kind: "draw",
      holdId,
      amount,
      keyId,
      record,
      ...(fromFree ? { fromFree: { keyLimit } } : {}),
    },
  };
}

/** Checks a request to charge. */
export function readDraw(message: DrawRequest): Addressed<Draw> {
  const { accountId, unit, holdId, amount, keyId } = message;
  const record = recordOf(message);
  const keyLimit = keyLimitOf(message);
  const fromFree = message.fromFree ? { keyLimit } : undefined;
  // A limit is checked also where it is not used.
  if (!fromFree) checkKeyLimit(keyLimit);
  return checkDraw({ accountId, unit, holdId, amount, keyId, record, fromFree });
}

/** Checks a request to end a hold with a charge. */
export function readSettle(message: SettleRequest): Addressed<Settle> {
  return checkSettle({ ...message, record: recordOf(message) });
}

/** Checks a request to end a hold without a charge. */
export function readRelease(message: ReleaseRequest): Addressed<Release> {
  return checkRelease({ ...message, record: recordOf(message) });
}

/** The record that came with a message. */
function recordOf(
  message: DrawRequest | SettleRequest | ReleaseRequest,
): RequestRecord | undefined {
  const { record } = message;
  if (!record) return undefined;
  const { startTime, firstOutputTime, endTime } = record;
  return {
    ...record,
    inputTokens: Number(record.inputTokens),
    cachedInputTokens: Number(record.cachedInputTokens),
    outputTokens: Number(record.outputTokens),
    reasoningTokens: Number(record.reasoningTokens),
    characters: Number(record.characters),
    images: Number(record.images),
    mediaMs: Number(record.mediaMs),
    startMs: startTime && timestampMs(startTime),
    firstOutputMs: firstOutputTime && timestampMs(firstOutputTime),
    endMs: endTime && timestampMs(endTime),
    priced: record.priced && pricedOf(record.priced),
  };
}

/** Checks one operation of several. */
export function readOperation({ operation }: OperationMessage): Addressed {
  switch (operation.case) {
    case "reserve":
      return readReserve(operation.value);
    case "settle":
      return readSettle(operation.value);
    case "release":
      return readRelease(operation.value);
    case "draw":
      return readDraw(operation.value);
    case undefined:
      return broken("operation");
  }
}

/** Checks a grant. */
export function readGrant(message: GrantRequest): Addressed<Grant> {
  const wallet = readWallet(message);
  const amount = readAmount("amount", message.amount, 1n, maxGrantAmount);
  const grantId = message.operationId;
  if (!grantIdPattern.test(grantId)) broken("operation_id");
  return { wallet, operation: { kind: "grant", grantId, amount } };
}

/** A refund, before its charge is looked up. */
export interface AskedRefund extends Pick<Refund, "entry" | "refundId" | "amount"> {
  wallet: WalletRef;
}

/** Checks a refund. */
export function readRefund(message: Omit<RefundRequest, "$typeName">): AskedRefund {
  const wallet = readWallet(message);
  const { operationId: refundId, amount, entryNumber } = message;
  if (entryNumber < 1n || entryNumber > maxEntryNumber) broken("entry_number");
  if (!grantIdPattern.test(refundId)) broken("operation_id");
  if (amount !== undefined) readAmount("amount", amount, 1n, maxAmount);
  return { wallet, entry: Number(entryNumber), refundId, amount };
}

/** Taking a grant back, before the grant is looked up. */
export interface AskedTakeBack extends Omit<TakeBack, "kind" | "grantId"> {
  wallet: WalletRef;
}

/** Checks a request to take a grant back. */
export function readTakeBack(message: TakeBackRequest): AskedTakeBack {
  const { wallet, entry, refundId: takeBackId, amount } = readRefund(message);
  return { wallet, entry, takeBackId, amount, upTo: message.upTo };
}

/** Checks the operator's decision on a hold. */
export function readEndHold(message: EndHoldRequest): Addressed<Settle | Release> {
  const wallet = readWallet(message);
  const holdId = readHoldId(message.holdId);
  if (message.settleAmount === undefined) return { wallet, operation: { kind: "release", holdId } };
  const amount = readAmount("settle_amount", message.settleAmount, 0n, maxAmount);
  return { wallet, operation: { kind: "settle", holdId, amount, withinHold: true } };
}

/** Checks an account's id. */
export function readAccountId(accountId: string): string {
  return accountOrKeyIdPattern.test(accountId) ? accountId : broken("account_id");
}

/** Checks the ids of keys. */
export function readKeyIds(keyIds: readonly string[]): readonly string[] {
  const fits =
    keyIds.length <= maxKeysPerAccount && keyIds.every((id) => accountOrKeyIdPattern.test(id));
  return fits ? keyIds : broken("key_ids");
}

/** Checks a hold's id. */
export function readHoldId(holdId: string): string {
  return holdIdPattern.test(holdId) ? holdId : broken("hold_id");
}

/** Checks a page size. 0 is the default. */
export function readPageSize(pageSize: number): number {
  if (pageSize === 0) return defaultPageSize;
  return pageSize >= 1 && pageSize <= maxPageSize ? pageSize : broken("page_size");
}

/** Refuses a field. */
export function broken(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}

function readWallet(message: { accountId: string; unit: Unit }): WalletRef {
  const accountId = readAccountId(message.accountId);
  switch (message.unit) {
    case Unit.USD_MICROS:
      return { accountId, unit: "usd_micros" };
    case Unit.CREDITS:
      return { accountId, unit: "credits" };
    default:
      return broken("unit");
  }
}

function readAmount(field: string, amount: bigint, least: bigint, most: bigint): bigint {
  return amount >= least && amount <= most ? amount : broken(field);
}
