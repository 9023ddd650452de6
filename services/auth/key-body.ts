// Reads the bodies that make or change a key, for the public API, the console and the command. Properties are OpenRouter's and
// genmesh's. Others are refused, because a misspelt bound would make a key without it.

import {
  codePoints,
  type NumberRule,
  optionalBoolean,
  optionalNumber,
  requiredString,
} from "#common/words/body.ts";
import { limitResetOf } from "#common/words/key-limits.ts";
import { optionalOutsideUrl } from "#common/words/outside-url.ts";
import { maxModelIdCharacters, maxWebhookUrlLength } from "#common/words/request-bounds.ts";
import { scopeNames } from "#common/words/scopes.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isoMs } from "#kit/base/iso-time.ts";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { KeyLimitReset, type Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Key } from "./key.ts";
import type { KeyRights } from "./key-rights.ts";
import {
  defaultGraceSeconds,
  maxAllowedModels,
  maxGraceSeconds,
  maxLimitUsdMicros,
  maxNameChars,
  maxRequestsPerMinute,
} from "./limits.ts";

/** The values that a body asks for. An absent part stays unchanged. A part that is null has no bound. */
export interface AskedKey {
  name?: string;
  disabled?: boolean;
  scopes?: Scope[];
  /** Empty means all. */
  allowedModels?: string[];
  monthlyUsdMicrosLimit?: bigint | null;
  limitReset?: KeyLimitReset;
  expiresAtMs?: number | null;
  requestsPerMinute?: number;
  webhookUrl?: string | null;
  /** Billing keeps this. */
  lowBalanceUsdMicros?: bigint | null;
  /** Properties that were sent and have no effect. */
  ignored: string[];
}

const shared = [
  "name",
  "limit",
  "limit_reset",
  "limitUsdMicros",
  "scopes",
  "models",
  "requestsPerMinute",
  "expiresAt",
  "expires_at",
  "webhookUrl",
];
/** Properties of OpenRouter without a meaning in genmesh. */
const withoutEffect = ["include_byok_in_limit", "creator_user_id", "workspace_id"];

/** The body of a creation by a key. `name` must be there. */
export function readNewKey(body: JsonObject, nowMs: number): AskedKey & { name: string } {
  refuseUnknown(body, shared);
  const name = readKeyName(body);
  return { ...readBounds(body, nowMs), name };
}

/** The body of a creation by an operator. `name` may be left out. */
export function readOperatorsKey(body: JsonObject, nowMs: number): AskedKey {
  refuseUnknown(body, shared);
  return { ...readBounds(body, nowMs), ...readNamePart(body) };
}

const lowBalance = "lowBalanceUsdMicros";

/** The body of a change. */
export function readKeyChange(body: JsonObject, nowMs: number): AskedKey {
  refuseUnknown(body, [...shared, "disabled", "lowBalanceUsdMicros"]);
  const disabled = optionalBoolean(body, "disabled");
  return {
    ...readBounds(body, nowMs),
    ...readNamePart(body),
    ...(disabled === undefined ? {} : { disabled }),
    ...(has(body, lowBalance)
      ? { lowBalanceUsdMicros: wholeMicros(body[lowBalance], lowBalance) }
      : {}),
  };
}

/** The body of a rotation: milliseconds for which the former secret stays valid. */
export function readRotation(body: JsonObject): number {
  refuseUnknown(body, ["graceSeconds"]);
  const rule: NumberRule = { min: 0, max: maxGraceSeconds, integer: true };
  return (optionalNumber(body, "graceSeconds", rule) ?? defaultGraceSeconds) * 1_000;
}

/** The rights that a body asks for. A part that the body does not name comes from `before`. */
export function askedRights(asked: AskedKey, before: KeyRights): KeyRights {
  const limit = asked.monthlyUsdMicrosLimit;
  const expiry = asked.expiresAtMs;
  const limitReset = asked.limitReset ?? before.limitReset;
  const monthlyUsdMicrosLimit = limit === undefined ? before.monthlyUsdMicrosLimit : limit;
  const expiresAtMs = expiry === undefined ? before.expiresAtMs : expiry;
  return {
    scopes: asked.scopes ?? before.scopes,
    allowedModels: asked.allowedModels ?? before.allowedModels,
    requestsPerMinute: asked.requestsPerMinute ?? before.requestsPerMinute,
    ...(monthlyUsdMicrosLimit == null ? {} : { monthlyUsdMicrosLimit }),
    ...(limitReset === undefined ? {} : { limitReset }),
    ...(expiresAtMs == null ? {} : { expiresAtMs }),
  };
}

/** The key with the values that a body asks for. A part that the body does not name stays unchanged. */
export function keyWith(asked: AskedKey, key: Key): Key {
  const { name = key.name, disabled = key.disabled, webhookUrl = key.webhookUrl } = asked;
  const { disabled: _, webhookUrl: _url, ...rest } = key;
  const { monthlyUsdMicrosLimit: _limit, expiresAtMs: _expiry, ...kept } = rest;
  return {
    ...kept,
    ...askedRights(asked, key),
    ...(name === undefined ? {} : { name }),
    ...(disabled ? { disabled } : {}),
    ...(webhookUrl == null ? {} : { webhookUrl }),
  };
}

function readBounds(body: JsonObject, nowMs: number): AskedKey {
  const scopes = readScopeNames(body);
  const allowedModels = readModels(body);
  const limit = readLimit(body);
  const expiresAtMs = readExpiresAt(body, nowMs);
  const webhookUrl = readWebhookUrl(body);
  const rate: NumberRule = { min: 1, max: maxRequestsPerMinute, integer: true };
  const requestsPerMinute = optionalNumber(body, "requestsPerMinute", rate);
  const limitReset = readReset(body);
  return {
    ignored: withoutEffect.filter((name) => has(body, name)),
    ...(scopes ? { scopes } : {}),
    ...(allowedModels ? { allowedModels } : {}),
    ...(limit === undefined ? {} : { monthlyUsdMicrosLimit: limit }),
    ...(limitReset === undefined ? {} : { limitReset }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
  };
}

/** Null means none. */
function readWebhookUrl(body: JsonObject): string | null | undefined {
  const name = "webhookUrl";
  if (has(body, name) && body[name] === null) return null;
  return optionalOutsideUrl(body, name, maxWebhookUrlLength);
}

/** Refuses a property that is not known. Some have no effect, and pass. */
export function refuseUnknown(
  body: JsonObject,
  known: readonly string[],
  ignored: readonly string[] = withoutEffect,
): void {
  const unknown = Object.keys(body).find(
    (name) => !known.includes(name) && !ignored.includes(name),
  );
  if (unknown === undefined) return;
  refuse(ErrorReason.UNSUPPORTED_PARAMETER, {
    param: [...unknown].slice(0, maxModelIdCharacters).join(""),
    message: `There is no such property here. There are: ${known.join(", ")}.`,
  });
}

/** A name, where the body has one. */
export function readNamePart(body: JsonObject): { name?: string } {
  return has(body, "name") ? { name: readKeyName(body) } : {};
}

function readKeyName(body: JsonObject): string {
  const name = requiredString(body, "name", { min: 1, max: maxNameChars });
  return name.trim() === "" ? invalid("name", "must not be blank") : name;
}

function readScopeNames(body: JsonObject): Scope[] | undefined {
  return readList(body, "scopes", Object.keys(scopeNames).length)?.map((name, i) => {
    const scope = Object.hasOwn(scopeNames, name) ? scopeNames[name] : undefined;
    const all = Object.keys(scopeNames).join(", ");
    return scope ?? invalid(`scopes[${i}]`, `must be one of: ${all}`);
  });
}

/** Null means all. The catalog is not asked, because a key may be made before its model. */
function readModels(body: JsonObject): string[] | undefined {
  if (has(body, "models") && body.models === null) return [];
  const models = readList(body, "models", maxAllowedModels);
  for (const [i, id] of (models ?? []).entries()) {
    const fits = id !== "" && codePoints(id, maxModelIdCharacters) <= maxModelIdCharacters;
    if (!fits) invalid(`models[${i}]`, `must have 1 to ${maxModelIdCharacters} characters`);
  }
  return models;
}

/** A list of strings, each once. An empty list is refused: a caller would read it as none, and the key would keep it as all. */
function readList(body: JsonObject, name: string, most: number): string[] | undefined {
  if (!has(body, name)) return undefined;
  const value = body[name];
  if (!Array.isArray(value)) refuse(ErrorReason.INVALID_TYPE, { param: name });
  const strings = value.map((one, i) =>
    typeof one === "string" ? one : refuse(ErrorReason.INVALID_TYPE, { param: `${name}[${i}]` }),
  );
  const unique = [...new Set(strings)];
  if (unique.length >= 1 && unique.length <= most) return unique;
  return invalid(name, `must have 1 to ${most} members`);
}

/** USD micros. Null means no limit. OpenRouter's name takes dollars, genmesh's takes micros. */
function readLimit(body: JsonObject): bigint | null | undefined {
  const dollars = has(body, "limit") ? dollarsToMicros(body.limit) : undefined;
  const micros = has(body, "limitUsdMicros")
    ? wholeMicros(body.limitUsdMicros, "limitUsdMicros")
    : undefined;
  if (dollars === undefined) return micros;
  if (micros !== undefined && micros !== dollars) {
    invalid("limitUsdMicros", "must be the same amount as 'limit' where both are sent");
  }
  return dollars;
}

/** By its decimal digits, so that no amount is rounded. */
function dollarsToMicros(value: JsonValue | undefined): bigint | null {
  if (value === null) return null;
  if (typeof value !== "number") refuse(ErrorReason.INVALID_TYPE, { param: "limit" });
  const [, whole, fraction = ""] = /^(\d+)(?:\.(\d{1,6}))?$/.exec(String(value)) ?? [];
  if (whole === undefined) {
    return invalid("limit", "must be an amount of dollars with at most six decimals, 0 or more");
  }
  return atMostLimit(BigInt(whole + fraction.padEnd(6, "0")), "limit");
}

function wholeMicros(value: JsonValue | undefined, param: string): bigint | null {
  if (value === null) return null;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    refuse(ErrorReason.INVALID_TYPE, { param });
  }
  return value < 0 ? invalid(param, "must be 0 or more") : atMostLimit(BigInt(value), param);
}

function atMostLimit(micros: bigint, param: string): bigint {
  return micros <= maxLimitUsdMicros
    ? micros
    : invalid(param, "must be nine billion dollars at most");
}

/** OpenRouter's word for the period of a limit. Null means never. */
function readReset(body: JsonObject): KeyLimitReset | undefined {
  const param = "limit_reset";
  if (!has(body, param)) return undefined;
  const reset = body[param];
  if (reset === null) return KeyLimitReset.NEVER;
  if (typeof reset !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
  return limitResetOf(reset) ?? invalid(param, "must be 'daily', 'weekly', 'monthly' or null");
}

/** Milliseconds since the epoch. Null means never. Takes OpenRouter's name and genmesh's. */
function readExpiresAt(body: JsonObject, nowMs: number): number | null | undefined {
  const times = ["expiresAt", "expires_at"]
    .filter((name) => has(body, name))
    .map((name) => readTime(body[name], name, nowMs));
  if (times.length === 2 && times[0] !== times[1]) {
    invalid("expires_at", "must be the same time as 'expiresAt' where both are sent");
  }
  return times[0];
}

function readTime(value: JsonValue | undefined, param: string, nowMs: number): number | null {
  if (value === null) return null;
  if (typeof value !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
  // A date alone names no moment of that day.
  const ms = value.includes("T") ? (isoMs(value) ?? 0) : 0;
  return ms > nowMs
    ? ms
    : invalid(param, "must be a time in the future, like 2030-01-31T00:00:00Z");
}

/** Has the body this property? */
export function has(body: JsonObject, name: string): boolean {
  return Object.hasOwn(body, name);
}

function invalid(param: string, rule: string): never {
  refuse(ErrorReason.INVALID_VALUE, { param, message: `The parameter '${param}' ${rule}.` });
}
