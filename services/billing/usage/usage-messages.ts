// Checks requests for usage and makes their answers' messages: buckets, lines and cursors. It hides from callers what only
// operators may see.

import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type FindLineRequest,
  type GetUsageRequest,
  type Line as LineMessage,
  LineSchema,
  type ListLinesRequest,
  type SearchLinesRequest,
  type UsageResult,
  UsageResultSchema,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { maxBuckets, maxLookUpLength, maxUsageModels } from "../base/limits.ts";
import { recordMessage, unitMessage } from "../ledger/messages.ts";
import { broken, readAccountId, readKeyIds, readPageSize } from "../ledger/requests.ts";
import { chargeTold, takeBackOf, type Unit } from "../ledger/wallet.ts";
import { partNames } from "./served.ts";
import {
  addSums,
  type Line,
  type LineKind,
  noSums,
  refundedKind,
  type Sums,
  type UsageKind,
  type UsageSums,
  usageKinds,
  zeros,
} from "./usage.ts";
import {
  type GroupQuery,
  type LinePlace,
  type LineQuery,
  placeOf,
  type ServedGroup,
  type UsageGroup,
} from "./usage-store.ts";

const hourSeconds = 3_600;
const daySeconds = 86_400;

/** Checks a request for usage. This and its neighbours refuse with INVALID_ARGUMENT, and name the field. */
export function readUsageRequest(message: GetUsageRequest): GroupQuery {
  const accountId = readAccountId(message.accountId);
  const { widthSeconds: width, buckets, keyIds, models, kinds } = message;
  if (width !== hourSeconds && width !== daySeconds) broken("width_seconds");
  if (buckets < 1 || buckets > maxBuckets) broken("buckets");
  const start = Number(message.startSeconds);
  if (start % width !== 0 || start < 0 || start > maxStartSeconds) broken("start_seconds");
  if (models.length > maxUsageModels) broken("models");
  const list = <T>(items: readonly T[]) => (items.length > 0 ? items : undefined);
  return {
    accountId,
    from: start,
    until: start + buckets * width,
    width,
    keyIds: list(readKeyIds(keyIds)),
    models: list(models),
    kinds: list(kinds.map(readUsageKind)),
    byKey: message.byKey,
    byModel: message.byModel,
    byKind: message.byKind,
  };
}

/** The end of year 9999. */
export const maxStartSeconds = 253_402_300_799;

/** Results of a bucket. The wallets' groups of the same key, model and kind become one, and so do those of both rollups. */
export function usageResults(
  groups: readonly UsageGroup[],
  served: readonly ServedGroup[],
): UsageResult[] {
  const results = new Map<string, Result>();
  const resultOf = ({ keyId, model, kind }: Omit<UsageGroup, "sums">): Result => {
    const name = JSON.stringify([keyId, model, kind]);
    const slot = { keyId, model, kind };
    const spent = { usd_micros: 0n, credits: 0n };
    const result = results.get(name) ?? { slot, sums: noSums, parts: zeros(partNames), spent };
    results.set(name, result);
    return result;
  };
  for (const group of groups) {
    const result = resultOf(group);
    result.sums = addSums(result.sums, group.sums);
    result.spent[group.unit] += group.sums.spent;
  }
  for (const group of served) {
    const result = resultOf(group);
    for (const name of partNames) result.parts[name] += group.sums[name];
  }
  return [...results]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { slot, sums, parts, spent }]) => {
      const { spent: _together, ...counts } = sums;
      const amounts = { spentUsdMicros: spent.usd_micros, spentCredits: spent.credits };
      return create(UsageResultSchema, { ...slot, ...counts, ...parts, ...amounts });
    });
}

interface Result {
  slot: Pick<UsageGroup, "keyId" | "model" | "kind">;
  sums: UsageSums;
  parts: Sums<(typeof partNames)[number]>;
  spent: Spent;
}

type Spent = Record<Unit, bigint>;

/** Checks a request for lines. */
export function readLinesRequest(message: ListLinesRequest): LineQuery & { accountId: string } {
  const { keyId, model, status, kinds, after, before } = message;
  if (after !== "" && before !== "") broken("before");
  for (const [field, value] of Object.entries({ model, status })) {
    if (value.length > maxLookUpLength) broken(field);
  }
  return {
    accountId: readAccountId(message.accountId),
    keyId: readKeyId(keyId),
    model: model || undefined,
    status: status || undefined,
    kinds: kinds.length > 0 ? kinds.map(readLineKind) : undefined,
    onlyMoney: message.onlyMoney,
    after: after === "" ? undefined : readPlace("after", after),
    before: before === "" ? undefined : readPlace("before", before),
    from: placeAt(message.fromTime),
    until: placeAt(message.untilTime),
    limit: readPageSize(message.pageSize),
  };
}

/** Checks a search through the lines of all accounts. */
export function readSearch(message: SearchLinesRequest): { id: string; query: LineQuery } {
  const { accountId, keyId, model, upstream, status, kinds, id, pageToken } = message;
  if (keyId !== "" && accountId === "") broken("key_id");
  for (const [field, value] of Object.entries({ model, upstream, status, id })) {
    if (value.length > maxLookUpLength) broken(field);
  }
  const query: LineQuery = {
    accountId: accountId === "" ? undefined : readAccountId(accountId),
    keyId: readKeyId(keyId),
    model: model || undefined,
    upstream: upstream || undefined,
    status: status || undefined,
    kinds: kinds.length > 0 ? kinds.map(readUsageKind) : usageKinds,
    after: pageToken === "" ? undefined : readSearchPlace(pageToken),
    from: placeAt(message.fromTime),
    until: placeAt(message.untilTime),
    limit: readPageSize(message.pageSize),
  };
  return { id, query };
}

/** Checks the value by which one request is looked up. */
export function readFindLine(message: FindLineRequest) {
  const { id } = message;
  if (id === "" || id.length > maxLookUpLength) broken("id");
  return { accountId: readAccountId(message.accountId), keyId: readKeyId(message.keyId), id };
}

/** Checks a key's id. Undefined where there is none. */
export function readKeyId(keyId: string): string | undefined {
  return keyId === "" ? undefined : readKeyIds([keyId])[0];
}

/** A line's message. `forOperator`: it names the upstream that answered, and its cost. */
export function lineMessage(line: Line, forOperator: boolean): LineMessage {
  const record = line.record === "" ? undefined : recordMessage(line.record);
  if (record && !forOperator) {
    record.upstream = "";
    record.failedTries = [];
    if (record.failure) Object.assign(record.failure, { upstreamKind: "", upstreamStatus: 0 });
    if (record.priced) {
      record.priced.upstreamCostSource = "";
      delete record.priced.upstreamCostUsdMicros;
    }
  }
  return create(LineSchema, {
    cursor: placeToken(placeOf(line)),
    accountId: forOperator ? line.wallet.accountId : "",
    unit: unitMessage(line.wallet.unit),
    number: BigInt(line.n),
    kind: line.kind,
    refundedKind: line.kind === "refund" ? refundedKind(line) : "",
    keyId: line.keyId,
    model: line.model,
    time: timestampFromMs(line.at),
    amount: line.amount,
    balance: line.balance,
    id: line.publicId,
    refundOf: BigInt(line.kind === "refund" ? (chargeTold(line)?.refundOf ?? 0) : 0),
    takeBackOf: BigInt(takeBackOf(line) ?? 0),
    ...(record && line.kind !== "refund" && line.kind !== "grant" ? { record } : {}),
  });
}

const unitLetters: Record<Unit, string> = { usd_micros: "u", credits: "c" };

/** A line's place in a cursor. */
export function placeToken({ at, unit, n }: LinePlace): string {
  return `${at}.${unitLetters[unit]}.${n}`;
}

/** The same among the lines of all accounts. */
export function searchToken(place: LinePlace): string {
  return `${placeToken(place)}.${place.accountId}`;
}

function readSearchPlace(token: string): LinePlace {
  const [, place = "", accountId = ""] =
    /^(\d+\.[uc]\.\d+)\.([\w-]{1,64})$/.exec(token) ?? broken("page_token");
  return { ...readPlace("page_token", place), accountId };
}

/** The place before all lines of a time, because no line has number 0. */
function placeAt(time: Timestamp | undefined): LinePlace | undefined {
  return time && { at: timestampMs(time), unit: "credits", n: 0 };
}

function readPlace(field: string, token: string): LinePlace {
  const [, at, letter, n] = /^(\d{1,15})\.([uc])\.(\d{1,15})$/.exec(token) ?? broken(field);
  return { at: Number(at), unit: letter === "u" ? "usd_micros" : "credits", n: Number(n) };
}

function readUsageKind(kind: string): UsageKind {
  return usageKinds.find((known) => known === kind) ?? broken("kinds");
}

function readLineKind(kind: string): LineKind {
  return kind === "grant" || kind === "refund" ? kind : readUsageKind(kind);
}
