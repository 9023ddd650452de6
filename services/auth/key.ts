// Says what an account and a key are, when a secret is valid, and how a rotation, a deletion or a closing changes them. It is
// pure. Both databases' stores call it, so that they agree.

import { createHash, timingSafeEqual } from "node:crypto";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { maxRotationsKept, secretChars } from "./limits.ts";

/** The stored form of a secret. The secret itself is never stored. */
export interface SecretDigest {
  /** SHA-256 of its UTF-8 bytes. */
  readonly sha256: Uint8Array;
  /** Its last four characters, for people. */
  readonly hint: string;
}

/** An API key. Values are replaced, never changed. */
export interface Key {
  /** Rotations do not change it. Files and idempotency records refer to it. */
  readonly keyId: string;
  readonly accountId: string;
  readonly secret: SecretDigest;
  /** The secret before the last rotation, until the end of its grace. */
  readonly former?: { readonly sha256: Uint8Array; readonly endMs: number };
  /** Route families. Empty means all. */
  readonly scopes: readonly Scope[];
  /** Model ids. Empty means all. */
  readonly allowedModels: readonly string[];
  readonly createdAtMs: number;
  /** The key is invalid from then on. */
  readonly expiresAtMs?: number;
  /** The key is invalid from then on, for good. */
  readonly revokedAtMs?: number;
  /** USD micros within the period of {@link limitReset}. The wallet counts them. */
  readonly monthlyUsdMicrosLimit?: bigint;
  /** The period of the limit. Absent means a month. */
  readonly limitReset?: KeyLimitReset;
  readonly requestsPerMinute: number;
  /** A name for people. */
  readonly name?: string;
  /** The key is invalid until it is enabled again. */
  readonly disabled?: true;
  /** The last minute in which a use of the key is known. */
  readonly lastUsedAtMs?: number;
  /** The receiver of webhooks for jobs whose submission names no address. */
  readonly webhookUrl?: string;
  /** The time of the last update or rotation. */
  readonly updatedAtMs?: number;
  /** The operation that made the key, where that may be repeated. */
  readonly madeBy?: KeyOperation;
  /** Its last rotations that may be repeated, the newest last. */
  readonly rotations?: readonly KeyOperation[];
}

/** A call with an idempotency key. Repeating it does nothing. */
export interface KeyOperation {
  /** SHA-256 over acting key, route and idempotency key, in hexadecimal. It is unique among all operations. */
  readonly slot: string;
  /** SHA-256 of the canonical body, in hexadecimal. A repeat has the same one. */
  readonly body: string;
}

/** The time for which a secret may be used. */
interface Validity {
  /** End of the secret's validity: expiry or end of grace, the earlier of the two. Absent means no end. */
  readonly untilMs?: number;
}

/**
 * May this secret be used at `nowMs`? Undefined means no: its key is deleted, disabled or expired, its grace has ended, or it belongs to
 * another key. At the very millisecond of its end a secret is invalid. Compares in constant time.
 */
export function validityOf(key: Key, sha256: Uint8Array, nowMs: number): Validity | undefined {
  const isCurrent = sameDigest(key.secret.sha256, sha256);
  const isFormer = key.former !== undefined && sameDigest(key.former.sha256, sha256);
  if (!isCurrent && !isFormer) return undefined;
  if (key.revokedAtMs !== undefined || key.disabled) return undefined;
  const graceEndMs = isCurrent ? undefined : key.former?.endMs;
  const untilMs = Math.min(key.expiresAtMs ?? Infinity, graceEndMs ?? Infinity);
  if (nowMs >= untilMs) return undefined;
  return untilMs === Infinity ? {} : { untilMs };
}

/**
 * The key with a new secret. Its present secret stays valid for `graceMs`, and ends at once for 0. An older one ends at once. Refuses a
 * deleted key with OPERATION_CONFLICT.
 */
export function rotated(
  key: Key,
  secret: SecretDigest,
  graceMs: number,
  nowMs: number,
  operation?: KeyOperation,
): Key {
  if (key.revokedAtMs !== undefined) {
    refuse(ErrorReason.OPERATION_CONFLICT, { message: "A revoked key cannot be rotated." });
  }
  const { former: _ended, ...kept } = key;
  const rest = {
    ...kept,
    updatedAtMs: nowMs,
    ...(operation
      ? { rotations: [...(key.rotations ?? []), operation].slice(-maxRotationsKept) }
      : {}),
  };
  if (graceMs <= 0) return { ...rest, secret };
  return { ...rest, secret, former: { sha256: key.secret.sha256, endMs: nowMs + graceMs } };
}

/** Was this rotation made before? Refuses with IDEMPOTENCY_KEY_REUSED where the earlier one had another body. */
export function isRepeated(key: Key, operation: KeyOperation | undefined): boolean {
  const before = key.rotations?.find(({ slot }) => slot === operation?.slot);
  return before !== undefined && operation !== undefined && isSameOperation(before, operation);
}

/** Answers true. Refuses with IDEMPOTENCY_KEY_REUSED where the body differs. */
export function isSameOperation(before: KeyOperation | undefined, again: KeyOperation): true {
  return before?.body === again.body || refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
}

/** A key of an account that is being closed: deleted, and without texts that people wrote. */
export function ended(key: Key, nowMs: number): Key {
  const { name, webhookUrl, ...rest } = key;
  const isOver = key.revokedAtMs !== undefined && name === undefined && webhookUrl === undefined;
  if (isOver) return key;
  return revoked(rest, nowMs);
}

/** The deleted key. A key that was deleted before keeps its first time. */
export function revoked(key: Key, nowMs: number): Key {
  return key.revokedAtMs === undefined ? { ...key, revokedAtMs: nowMs } : key;
}

/** Has the key this hash, as its current or its former one? */
export function hasHash(key: Key, sha256: Uint8Array): boolean {
  return [key.secret, key.former].some((one) => one && sameDigest(one.sha256, sha256));
}

function sameDigest(kept: Uint8Array, sent: Uint8Array): boolean {
  return kept.length === sent.length && timingSafeEqual(kept, sent);
}

/** A new secret: "gm_" and 40 characters of [A-Za-z0-9]. */
export function makeSecret(ids: Ids): string {
  return `gm_${ids.secret(secretChars)}`;
}

/**
 * The stored form of a secret. One round of SHA-256 is enough: no dictionary has a random secret, or one with 20 characters of an
 * operator's choice. The gateway hashes a secret on every request.
 */
export function digestOf(secret: string): SecretDigest {
  return { sha256: createHash("sha256").update(secret).digest(), hint: secret.slice(-4) };
}

/** A hash as documents hold it. */
export function hashText(sha256: Uint8Array): string {
  return Buffer.from(sha256).toString("hex");
}
