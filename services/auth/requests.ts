import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { codePoints } from "#kit/body.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { RatedKey } from "#kit/rate-buckets.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import {
  defaultGraceSeconds,
  defaultKeyRequestsPerMinute,
  defaultPageSize,
  maxAllowedModels,
  maxGraceSeconds,
  maxModelIdChars,
  maxNameChars,
  maxOperationIdChars,
  maxPageSize,
  maxRequestsPerMinute,
  secretPattern,
} from "./limits.ts";
import type { AccountCursor } from "./store.ts";

// What a request's fields may hold. Everything here refuses with INVALID_ARGUMENT, naming the field, never its value.

const sha256Bytes = 32;
const idPattern = /^[A-Za-z0-9_-]{1,64}$/;
const knownScopes: ReadonlySet<number> = new Set(
  Object.values(Scope).filter((scope) => scope !== Scope.UNSPECIFIED),
);

/** A SHA-256. */
export function readDigest(bytes: Uint8Array): Uint8Array {
  return bytes.length === sha256Bytes ? bytes : invalid("secret_sha256");
}

/** An account's name. */
export function readName(name: string): string {
  const fits = codePoints(name, maxNameChars) <= maxNameChars && name.trim() !== "";
  return fits ? name : invalid("name");
}

/** A secret that the caller chose; empty: none. */
export function readSecret(secret: string): string | undefined {
  if (secret === "") return undefined;
  return secretPattern.test(secret) ? secret : invalid("api_key");
}

/** An operation id; empty: none. */
export function readOperationId(id: string): string | undefined {
  if (id === "") return undefined;
  return codePoints(id, maxOperationIdChars) <= maxOperationIdChars ? id : invalid("operation_id");
}

/** Whose requests are counted. */
export function readRatedKey(request: RatedKey): RatedKey {
  const { keyId, accountId, requestsPerMinute, accountRequestsPerMinute } = request;
  if (!idPattern.test(keyId)) invalid("key_id");
  if (!idPattern.test(accountId)) invalid("account_id");
  if (!isRate(requestsPerMinute)) invalid("requests_per_minute");
  if (!isRate(accountRequestsPerMinute)) invalid("account_requests_per_minute");
  return { keyId, accountId, requestsPerMinute, accountRequestsPerMinute };
}

/** How many requests are to be counted at once. */
export function readWanted(wanted: number): number {
  return isRate(wanted) ? wanted : invalid("wanted");
}

function isRate(value: number): boolean {
  return value >= 1 && value <= maxRequestsPerMinute;
}

/** Route families, each once. */
export function readScopes(scopes: readonly Scope[]): Scope[] {
  if (!scopes.every((scope) => knownScopes.has(scope))) invalid("scopes");
  return [...new Set(scopes)];
}

/** Model ids, each once. Whether the catalog has them is not asked: a key may precede its model. */
export function readAllowedModels(models: readonly string[]): string[] {
  const fits = models.every((id) => id !== "" && id.length <= maxModelIdChars);
  if (!fits || models.length > maxAllowedModels) invalid("allowed_models");
  return [...new Set(models)];
}

/** A moment that lies in the future; absent: none. */
export function readExpiry(time: Timestamp | undefined, nowMs: number): number | undefined {
  if (!time) return undefined;
  const ms = timestampMs(time);
  // The last moment that a Date, and with it every later reader, can hold.
  return ms > nowMs && ms <= 8.64e15 ? ms : invalid("expire_time");
}

/** A monthly limit, 0 or more; absent: none. */
export function readMonthlyLimit(micros: bigint | undefined): bigint | undefined {
  return micros === undefined || micros >= 0n ? micros : invalid("monthly_usd_micros_limit");
}

/** Requests a minute; 0: the default. */
export function readKeyRate(perMinute: number): number {
  if (perMinute === 0) return defaultKeyRequestsPerMinute;
  const fits = perMinute >= 1 && perMinute <= maxRequestsPerMinute;
  return fits ? perMinute : invalid("requests_per_minute");
}

/** Milliseconds of grace; absent: the default. */
export function readGraceMs(seconds: number | undefined): number {
  const grace = seconds ?? defaultGraceSeconds;
  return grace >= 0 && grace <= maxGraceSeconds ? grace * 1_000 : invalid("grace_seconds");
}

/** Size of a page; 0: the default. */
export function readPageSize(size: number): number {
  if (size === 0) return defaultPageSize;
  return size >= 1 && size <= maxPageSize ? size : invalid("page_size");
}

/** Where a page begins; empty: at the first account. */
export function readPageToken(token: string): AccountCursor | undefined {
  if (token === "") return undefined;
  const [, ms, accountId] =
    /^(\d{1,16}):([\w-]{1,64})$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (ms === undefined || accountId === undefined) invalid("page_token");
  return { createdAtMs: Number(ms), accountId };
}

/** The token of the page after `last`. */
export function pageTokenAfter(last: AccountCursor): string {
  return Buffer.from(`${last.createdAtMs}:${last.accountId}`).toString("base64url");
}

/** A revision to watch from, 0 or more. */
export function readRevision(revision: bigint): bigint {
  return revision >= 0n ? revision : invalid("since_revision");
}

function invalid(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
