import { timingSafeEqual } from "node:crypto";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";

/** What owns wallets, keys and uploads. */
export interface Account {
  readonly accountId: string;
  readonly name: string;
  readonly createdAtMs: number;
  /** Of all its keys together. */
  readonly requestsPerMinute: number;
}

/** A secret as it is kept: never itself. */
export interface SecretDigest {
  /** SHA-256 of its UTF-8 bytes. */
  readonly sha256: Uint8Array;
  /** Its last four characters, for people. */
  readonly hint: string;
}

/** An API key. Values are replaced, never changed. */
export interface Key {
  /** Stays over rotations: files and idempotency records hang on it. */
  readonly keyId: string;
  readonly accountId: string;
  readonly secret: SecretDigest;
  /** The secret before the last rotation, until the end of its grace. */
  readonly former?: { readonly sha256: Uint8Array; readonly endMs: number };
  /** Route families; empty: all. */
  readonly scopes: readonly Scope[];
  /** Model ids; empty: all. */
  readonly allowedModels: readonly string[];
  readonly createdAtMs: number;
  /** From then on it is invalid. */
  readonly expiresAtMs?: number;
  /** From then on it is invalid, for good. */
  readonly revokedAtMs?: number;
  /** USD micros a calendar month (UTC), counted in the wallet. */
  readonly monthlyUsdMicrosLimit?: bigint;
  readonly requestsPerMinute: number;
}

/** How long a secret may be used, told at one moment. */
export interface Validity {
  /** End of the secret's validity (expiry or grace, the earlier); absent: none. */
  readonly untilMs?: number;
}

/**
 * May this secret be used at `nowMs`? Undefined: it is revoked, expired, past its grace, or not this key's. An end is
 * exclusive: at that very millisecond the secret is invalid. Compares in constant time.
 */
export function validityOf(key: Key, sha256: Uint8Array, nowMs: number): Validity | undefined {
  const isCurrent = sameDigest(key.secret.sha256, sha256);
  const isFormer = key.former !== undefined && sameDigest(key.former.sha256, sha256);
  if (!isCurrent && !isFormer) return undefined;
  if (key.revokedAtMs !== undefined) return undefined;
  const graceEndMs = isCurrent ? undefined : key.former?.endMs;
  const untilMs = Math.min(key.expiresAtMs ?? Infinity, graceEndMs ?? Infinity);
  if (nowMs >= untilMs) return undefined;
  return untilMs === Infinity ? {} : { untilMs };
}

/**
 * The key with a new secret. The one it had stays valid for `graceMs` (0: ends at once); one that was already former
 * ends at once. Refuses with OPERATION_CONFLICT where the key is revoked.
 */
export function rotated(key: Key, secret: SecretDigest, graceMs: number, nowMs: number): Key {
  if (key.revokedAtMs !== undefined) {
    refuse(ErrorReason.OPERATION_CONFLICT, { message: "A revoked key cannot be rotated." });
  }
  const { former: _ended, ...rest } = key;
  if (graceMs <= 0) return { ...rest, secret };
  return { ...rest, secret, former: { sha256: key.secret.sha256, endMs: nowMs + graceMs } };
}

/** The key, ended. One that was revoked before keeps its first time. */
export function revoked(key: Key, nowMs: number): Key {
  return key.revokedAtMs === undefined ? { ...key, revokedAtMs: nowMs } : key;
}

function sameDigest(kept: Uint8Array, sent: Uint8Array): boolean {
  return kept.length === sent.length && timingSafeEqual(kept, sent);
}
