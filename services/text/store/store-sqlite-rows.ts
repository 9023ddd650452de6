// The tables of text's store in SQLite, and the steps by which they came to be. Here a record becomes a row and back.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SqlRow } from "#kit/store/sqlite.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import type { EndKind } from "../metering/charge.ts";
import type { TextPrice } from "../metering/pricing.ts";
import type { OpaqueMaker } from "../request/opaque.ts";
import type { Charge, KeyedRecord, Review, Told, UsageRecord } from "./store.ts";

/** The name under which the steps below are counted. */
export const schemaName = "text";

/** Tables of the text service, step by step. A shipped step is never changed. */
export const textSchema: readonly string[] = [
  `CREATE TABLE text_usage (
    request_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    model_id TEXT NOT NULL,
    catalog_version TEXT NOT NULL,
    price_input INTEGER NOT NULL,
    price_cached INTEGER NOT NULL,
    price_output INTEGER NOT NULL,
    bound_input INTEGER NOT NULL,
    bound_output INTEGER NOT NULL,
    hold_amount INTEGER NOT NULL,
    hold_check_at INTEGER NOT NULL,
    owner TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    dispatched INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    idem_key TEXT,
    fingerprint TEXT,
    charge TEXT,
    reported TEXT,
    end_kind TEXT,
    closed_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX text_usage_idem ON text_usage (key_id, operation, idem_key) WHERE idem_key IS NOT NULL;
  CREATE INDEX text_usage_due ON text_usage (due_at);
  CREATE INDEX text_usage_review ON text_usage (closed_at) WHERE status = 'review';
  CREATE TABLE text_answer (
    request_id TEXT PRIMARY KEY,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE text_opaque (
    hash TEXT NOT NULL,
    account_id TEXT NOT NULL,
    upstream TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (hash, account_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX text_opaque_until ON text_opaque (until);`,
  `CREATE TABLE text_review (
    request_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    reported TEXT NOT NULL,
    charged INTEGER NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX text_review_at ON text_review (at);
  CREATE INDEX text_review_until ON text_review (until);`,
  // Requests that are not closed are searched in both directions of time, apart from the kept answers.
  `DROP INDEX text_usage_due;
  CREATE INDEX text_usage_due ON text_usage (due_at) WHERE status <> 'closed';
  CREATE INDEX text_usage_kept ON text_usage (due_at) WHERE status = 'closed';`,
  // Names as a JSON array. Null means none, or an answer of an earlier version.
  "ALTER TABLE text_answer ADD COLUMN ignored TEXT",
  // Bytes of kept answers. Those of earlier versions are not counted, because their time ends within a day.
  `CREATE TABLE text_kept (
    account_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (account_id, until)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX text_kept_until ON text_kept (until);`,
  // Facts of a record beside its charge, as JSON. Null means none, or a row of an earlier version.
  "ALTER TABLE text_usage ADD COLUMN told TEXT",
  // Prices beside the three, as JSON with amounts as text, and tokens that have such prices. Null means none.
  `ALTER TABLE text_usage ADD COLUMN price_more TEXT;
  ALTER TABLE text_usage ADD COLUMN counted_audio INTEGER;
  ALTER TABLE text_usage ADD COLUMN counted_images INTEGER;`,
];

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
      ...(typeof row.price_more === "string" ? morePricesOfText(row.price_more) : {}),
    },
    bounds: {
      ...{ input: Number(row.bound_input), output: Number(row.bound_output) },
      ...(row.counted_audio === null ? {} : { countedAudio: Number(row.counted_audio) }),
      ...(row.counted_images === null ? {} : { countedImages: Number(row.counted_images) }),
    },
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

/**
 * A row of `text_usage` with the `body` and `ignored` of its answer. A request that is not open is in a slot only where an answer
 * was given.
 */
export function keyedOf(row: SqlRow): KeyedRecord {
  const charge = row.charge === null ? undefined : chargeOfText(String(row.charge));
  const answerId = typeof row.told === "string" ? toldOfText(row.told).answerId : undefined;
  return {
    requestId: String(row.request_id),
    ...(answerId === undefined ? {} : { answerId }),
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

/** A row of `text_review`, or of a request that an earlier version put in review. */
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

/** The facts of a record as JSON. Null means none. */
export function toldText(told: Told | undefined): string | null {
  return told ? JSON.stringify(told) : null;
}

function toldOfText(text: string): Told {
  const told: unknown = JSON.parse(text);
  return isJsonObject(told) ? (told as Told) : {};
}

/** The prices beside the three, as JSON. Amounts are text, because they are money. Null means none. */
export function morePricesText(price: TextPrice): string | null {
  const { input: _i, cachedInput: _c, output: _o, ...more } = price;
  if (Object.keys(more).length === 0) return null;
  return JSON.stringify(more, (_, value) => (typeof value === "bigint" ? `${value}` : value));
}

function morePricesOfText(
  text: string,
): Pick<TextPrice, "list" | "asksLongCache" | "upstreamCost"> {
  return JSON.parse(text, (_, value) => (typeof value === "string" ? BigInt(value) : value));
}

/** A charge as JSON. Its amount is text, because it is money. */
export function chargeText(charge: Charge): string {
  return JSON.stringify({
    ...charge,
    amount: charge.amount?.toString() ?? null,
    upstreamCost: charge.upstreamCost?.toString(),
  });
}

function chargeOfText(text: string): Charge {
  const parsed: unknown = JSON.parse(text);
  const charge: JsonObject = isJsonObject(parsed) ? parsed : {};
  const { amount, input, cachedInput, output, reasoning, estimated, upstreamCost, ...classes } =
    charge;
  return {
    ...(classes as Partial<Charge>),
    ...(typeof upstreamCost === "string" ? { upstreamCost: BigInt(upstreamCost) } : {}),
    amount: typeof amount === "string" ? BigInt(amount) : undefined,
    input: Number(input),
    cachedInput: Number(cachedInput),
    output: Number(output),
    ...(reasoning === undefined ? {} : { reasoning: Number(reasoning) }),
    estimated: estimated === true,
  };
}
