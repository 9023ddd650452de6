import { isJsonObject, type JsonObject } from "#kit/json.ts";
import type { SqlRow } from "#kit/sqlite.ts";
import type { TextOperation } from "../upstreams/text/port.ts";
import type { OpaqueMaker } from "./request/opaque.ts";
import type { Charge, KeyedRecord, Review, Told, UsageRecord } from "./store.ts";
import type { EndKind } from "./usage.ts";

/** A row of `text_usage`. */
export function recordOf(row: SqlRow): UsageRecord {
  return {
    requestId: String(row.request_id),
    accountId: String(row.account_id),
    keyId: String(row.key_id),
    operation: String(row.operation) as TextOperation,
    modelId: String(row.model_id),
    catalogVersion: String(row.catalog_version),
    price: {
      input: BigInt(row.price_input as bigint),
      cachedInput: BigInt(row.price_cached as bigint),
      output: BigInt(row.price_output as bigint),
    },
    bounds: { input: Number(row.bound_input), output: Number(row.bound_output) },
    holdAmount: BigInt(row.hold_amount as bigint),
    holdCheckAt: Number(row.hold_check_at),
    inputTokens: Number(row.input_tokens),
    owner: String(row.owner),
    openedAt: Number(row.opened_at),
    leaseUntil: Number(row.due_at),
    status: String(row.status) as UsageRecord["status"],
    dispatched: Number(row.dispatched) === 1,
    outputTokens: Number(row.output_tokens),
    ...(row.idem_key === null
      ? {}
      : { idempotency: { key: String(row.idem_key), fingerprint: String(row.fingerprint) } }),
    ...(typeof row.told === "string" ? { told: toldOfText(row.told) } : {}),
    ...(row.charge === null ? {} : { charge: chargeOfText(String(row.charge)) }),
    ...(row.reported === null ? {} : { reported: String(row.reported) }),
    ...(row.end_kind === null ? {} : { end: String(row.end_kind) as EndKind }),
    ...(row.closed_at === null ? {} : { closedAt: Number(row.closed_at) }),
  };
}

/** A row of `text_usage` with the `body` and `ignored` of its answer. One that is over has a key only where an answer was given. */
export function keyedOf(row: SqlRow): KeyedRecord {
  const charge = row.charge === null ? undefined : chargeOfText(String(row.charge));
  return {
    requestId: String(row.request_id),
    fingerprint: String(row.fingerprint),
    answer:
      row.body instanceof Uint8Array ? row.body : row.status === "open" ? undefined : "not_kept",
    cost: charge && (charge.amount ?? 0n),
    ...(typeof row.ignored === "string" ? { ignored: namesOf(row.ignored) } : {}),
  };
}

function namesOf(text: string): string[] {
  const names: unknown = JSON.parse(text);
  return Array.isArray(names) ? names.map(String) : [];
}

/** A row of `text_review`, or of a request that an older release put in review. */
export function reviewOf(row: SqlRow): Review {
  return {
    requestId: String(row.request_id),
    accountId: String(row.account_id),
    modelId: String(row.model_id),
    reported: String(row.reported),
    charged: row.charged === null ? undefined : BigInt(row.charged as bigint),
    at: Number(row.at),
  };
}

/** A row of `text_opaque`. */
export function makerOf(row: SqlRow): OpaqueMaker {
  return {
    hash: String(row.hash),
    accountId: String(row.account_id),
    upstream: String(row.upstream),
  };
}

/** What a record says, as JSON; null: nothing. */
export function toldText(told: Told | undefined): string | null {
  return told ? JSON.stringify(told) : null;
}

function toldOfText(text: string): Told {
  const told: unknown = JSON.parse(text);
  return isJsonObject(told) ? (told as Told) : {};
}

/** A charge as JSON; its amount as text, because it is money. */
export function chargeText(charge: Charge): string {
  return JSON.stringify({ ...charge, amount: charge.amount?.toString() ?? null });
}

function chargeOfText(text: string): Charge {
  const parsed: unknown = JSON.parse(text);
  const { amount, input, cachedInput, output, reasoning, estimated }: JsonObject = isJsonObject(
    parsed,
  )
    ? parsed
    : {};
  return {
    amount: typeof amount === "string" ? BigInt(amount) : undefined,
    input: Number(input),
    cachedInput: Number(cachedInput),
    output: Number(output),
    ...(reasoning === undefined ? {} : { reasoning: Number(reasoning) }),
    estimated: estimated === true,
  };
}
