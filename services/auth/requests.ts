// Reads the fields of requests. All functions refuse with INVALID_ARGUMENT and name the field, never its value. `key-body.ts` reads the
// bodies of keys.

import { type Timestamp, timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { codePoints } from "#common/words/body.ts";
import { isLimitReset, limitResetWord } from "#common/words/key-limits.ts";
import { scopeName } from "#common/words/scopes.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { RatedKey } from "#kit/share/rate-buckets.ts";
import type {
  CreateKeyRequest,
  Identity,
  KeyUse as KeyUseMessage,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import {
  defaultGraceSeconds,
  defaultPageSize,
  maxClientChars,
  maxGraceSeconds,
  maxIssuerChars,
  maxNameChars,
  maxNamedAccounts,
  maxOperationIdChars,
  maxPageSize,
  maxRequestsPerMinute,
  maxSubjectChars,
  maxUsesPerMessage,
  secretPattern,
} from "./limits.ts";
import { operatorNamePattern, passwordChars } from "./operator-limits.ts";
import type { SessionIdentity } from "./session.ts";
import type { AccountCursor, AccountSearch, KeyPage, KeyUse } from "./store.ts";
import { totpSecretPattern } from "./totp.ts";

const sha256Bytes = 32;
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

/** A secret that the caller chose. Empty means none. */
export function readSecret(secret: string): string | undefined {
  if (secret === "") return undefined;
  return secretPattern.test(secret) ? secret : invalid("api_key");
}

/** An operation id. Empty means none. */
export function readOperationId(id: string): string | undefined {
  if (id === "") return undefined;
  return codePoints(id, maxOperationIdChars) <= maxOperationIdChars ? id : invalid("operation_id");
}

/** The key whose requests are counted. */
export function readRatedKey(request: RatedKey): RatedKey {
  const { keyId, accountId, requestsPerMinute, accountRequestsPerMinute } = request;
  if (!accountOrKeyIdPattern.test(keyId)) invalid("key_id");
  if (!accountOrKeyIdPattern.test(accountId)) invalid("account_id");
  if (!isRate(requestsPerMinute)) invalid("requests_per_minute");
  if (!isRate(accountRequestsPerMinute)) invalid("account_requests_per_minute");
  return { keyId, accountId, requestsPerMinute, accountRequestsPerMinute };
}

/** The number of requests to be counted at once. */
export function readWanted(wanted: number): number {
  return isRate(wanted) ? wanted : invalid("wanted");
}

function isRate(value: number): boolean {
  return value >= 1 && value <= maxRequestsPerMinute;
}

/** Route families of an account's first key, each once. */
export function readScopes(scopes: readonly Scope[]): Scope[] {
  if (!scopes.every((scope) => knownScopes.has(scope))) invalid("scopes");
  return [...new Set(scopes)];
}

/** The fields of {@link CreateKeyRequest} as the body of a key. It is to be deleted together with CreateKey. */
export function asKeyBody(req: CreateKeyRequest): JsonObject {
  const { name, webhookUrl, requestsPerMinute, expireTime, limitReset: reset } = req;
  const limit = req.monthlyUsdMicrosLimit;
  return {
    ...(name === "" ? {} : { name }),
    ...(req.scopes.length === 0 ? {} : { scopes: req.scopes.map(scopeName) }),
    ...(req.allowedModels.length === 0 ? {} : { models: [...req.allowedModels] }),
    ...(expireTime ? { expiresAt: timeText(expireTime) } : {}),
    ...(limit === undefined ? {} : { limitUsdMicros: Number(limit) }),
    ...(reset === KeyLimitReset.UNSPECIFIED
      ? {}
      : { limit_reset: isLimitReset(reset) ? limitResetWord(reset) : String(reset) }),
    ...(requestsPerMinute === 0 ? {} : { requestsPerMinute }),
    ...(webhookUrl === "" ? {} : { webhookUrl }),
  };
}

/** A time in ISO 8601. "" where a date cannot hold it, which every body refuses. */
function timeText(time: Timestamp): string {
  const date = timestampDate(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** Milliseconds of grace. Absent means the default. */
export function readGraceMs(seconds: number | undefined): number {
  const grace = seconds ?? defaultGraceSeconds;
  return grace >= 0 && grace <= maxGraceSeconds ? grace * 1_000 : invalid("grace_seconds");
}

/** Size of a page. 0 means the default. */
export function readPageSize(size: number): number {
  if (size === 0) return defaultPageSize;
  return size >= 1 && size <= maxPageSize ? size : invalid("page_size");
}

/** Ids of accounts that are looked for, without those that no account can have. */
export function readAccountIds(ids: readonly string[]): readonly string[] {
  if (ids.length > maxNamedAccounts) return invalid("account_ids");
  return ids.filter((id) => accountOrKeyIdPattern.test(id));
}

/** The start of a page. Empty means the first account. */
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

/** The search words for accounts or keys. Empty means all. */
export function readQuery(query: string): string {
  return codePoints(query, maxNameChars) <= maxNameChars ? query : invalid("query");
}

/** The start of a page of found accounts. Empty means the first. */
export function readSearchToken(token: string): AccountSearch["after"] {
  if (token === "") return undefined;
  const text = Buffer.from(token, "base64url").toString();
  const [, accountId, nameKey] = /^([\w-]{1,64}):(.*)$/s.exec(text) ?? [];
  if (accountId === undefined || nameKey === undefined) invalid("page_token");
  return { accountId, nameKey };
}

/** The token of the page after `last`. */
export function searchTokenAfter(last: { accountId: string; nameKey: string }): string {
  return Buffer.from(`${last.accountId}:${last.nameKey}`).toString("base64url");
}

/** The start of a page of keys. Empty means the first. */
export function readKeyToken(token: string): KeyPage["after"] {
  const after = readPageToken(token);
  return after && { createdAtMs: after.createdAtMs, keyId: after.accountId };
}

/** A revision to watch from, 0 or more. */
export function readRevision(revision: bigint): bigint {
  return revision >= 0n ? revision : invalid("since_revision");
}

/** The number of keys to skip, 0 or more. */
export function readOffset(offset: number): number {
  return offset >= 0 ? offset : invalid("offset");
}

/** Uses of keys. */
export function readUses(uses: readonly KeyUseMessage[]): KeyUse[] {
  if (uses.length > maxUsesPerMessage) invalid("uses");
  return uses.map(({ keyId, useTime }) => {
    if (!accountOrKeyIdPattern.test(keyId) || !useTime) invalid("uses");
    return { keyId, atMs: timestampMs(useTime) };
  });
}

/** The client whose failed sign-ins are counted together. */
export function readClient(client: string): string {
  return client !== "" && client.length <= maxClientChars ? client : invalid("client");
}

/** A person that an identity provider identified. */
export function readIdentity(identity: Identity | undefined): SessionIdentity {
  const { issuer = "", subject = "", confirmed = false } = identity ?? {};
  const fits = issuer.length <= maxIssuerChars && subject.length <= maxSubjectChars;
  if (issuer === "" || subject === "" || !fits) invalid("identity");
  return { issuer, subject, confirmed };
}

/** An operator's name as it is kept, in small letters. Undefined: no operator can be called so. */
export function operatorNameOf(sent: string): string | undefined {
  const name = sent.toLowerCase();
  return operatorNamePattern.test(name) ? name : undefined;
}

/** The name of a new operator. */
export function readOperatorName(sent: string): string {
  return operatorNameOf(sent) ?? invalid("name");
}

/** A new password. */
export function readPassword(password: string): string {
  const { least, most } = passwordChars;
  const chars = codePoints(password, most);
  return chars >= least && chars <= most ? password : invalid("password");
}

/** The secret of a second factor, in base32. */
export function readTotpSecret(secret: string): string {
  return totpSecretPattern.test(secret) ? secret : invalid("totp_secret");
}

function invalid(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
