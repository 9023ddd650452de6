import { createHash, timingSafeEqual } from "node:crypto";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { maxRotationsKept, secretChars } from "./limits.ts";

/** What owns wallets, keys and uploads. */
export interface Account {
  readonly accountId: string;
  readonly name: string;
  readonly createdAtMs: number;
  /** Of all its keys together. */
  readonly requestsPerMinute: number;
  /** Since then its keys may only read; absent: it is active. */
  readonly suspendedAtMs?: number;
  /** Since then its keys are invalid for good, and its name is erased; absent: it is not being closed. */
  readonly closingAtMs?: number;
  /** Since then nothing of it is left but ids and the ledger. */
  readonly closedAtMs?: number;
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
  /** USD micros in the time that {@link limitReset} says, counted in the wallet. */
  readonly monthlyUsdMicrosLimit?: bigint;
  /** When what counts against the limit begins anew; absent: each month. */
  readonly limitReset?: KeyLimitReset;
  readonly requestsPerMinute: number;
  /** What people call it. */
  readonly name?: string;
  /** It is invalid until it is enabled again. */
  readonly disabled?: true;
  /** The last minute in which it is known to have been used. */
  readonly lastUsedAtMs?: number;
  /** Told of the ends of its jobs whose submissions name no address. */
  readonly webhookUrl?: string;
  /** When an update or a rotation changed it last. */
  readonly updatedAtMs?: number;
  /** The operation that made it, where that may be repeated. */
  readonly madeBy?: KeyOperation;
  /** Its last rotations that may be repeated, the newest last. */
  readonly rotations?: readonly KeyOperation[];
}

/** A call with an idempotency key: a repeat of it does nothing. */
export interface KeyOperation {
  /** SHA-256 over acting key, route and idempotency key, hexadecimal: unique among all operations. */
  readonly slot: string;
  /** SHA-256 of the canonical body, hexadecimal: a repeat brings the same. */
  readonly body: string;
}

/** How long a secret may be used, told at one moment. */
interface Validity {
  /** End of the secret's validity (expiry or grace, the earlier); absent: none. */
  readonly untilMs?: number;
}

/**
 * May this secret be used at `nowMs`? Undefined: its key is revoked, disabled or expired, or it is past its grace, or not
 * this key's. An end is exclusive: at that very millisecond the secret is invalid. Compares in constant time.
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
 * The key with a new secret. The one it had stays valid for `graceMs` (0: ends at once); one that was already former
 * ends at once. Refuses with OPERATION_CONFLICT where the key is revoked.
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

/** Was this rotation made before? Refuses with IDEMPOTENCY_KEY_REUSED where that had another body. */
export function isRepeated(key: Key, operation: KeyOperation | undefined): boolean {
  const before = key.rotations?.find(({ slot }) => slot === operation?.slot);
  return before !== undefined && operation !== undefined && isSameOperation(before, operation);
}

/** True, or refuses with IDEMPOTENCY_KEY_REUSED where the body differs. */
export function isSameOperation(before: KeyOperation | undefined, again: KeyOperation): true {
  return before?.body === again.body || refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
}

/** The account, suspended or active. What it is already keeps its time. Refuses with OPERATION_CONFLICT one that is being closed. */
export function withState(account: Account, suspended: boolean, nowMs: number): Account {
  refuseClosing(account);
  const { suspendedAtMs, ...rest } = account;
  if (!suspended) return suspendedAtMs === undefined ? account : rest;
  return suspendedAtMs === undefined ? { ...rest, suspendedAtMs: nowMs } : account;
}

/** Refuses with OPERATION_CONFLICT an account that is being closed, or is closed. */
export function refuseClosing({ closingAtMs }: Account): void {
  if (closingAtMs === undefined) return;
  refuse(ErrorReason.OPERATION_CONFLICT, { message: "The account is closed, or being closed." });
}

/** The account, being closed, without its name. One that is already keeps its time. */
export function closing(account: Account, nowMs: number): Account {
  return account.closingAtMs === undefined ? { ...account, name: "", closingAtMs: nowMs } : account;
}

/** The account, closed. Refuses with OPERATION_CONFLICT one that is not being closed. */
export function closed(account: Account, nowMs: number): Account {
  if (account.closingAtMs === undefined) {
    refuse(ErrorReason.OPERATION_CONFLICT, { message: "The account is not being closed." });
  }
  return account.closedAtMs === undefined ? { ...account, closedAtMs: nowMs } : account;
}

/** A key of an account that is being closed: revoked, and without what people wrote. */
export function ended(key: Key, nowMs: number): Key {
  const { name, webhookUrl, ...rest } = key;
  const isOver = key.revokedAtMs !== undefined && name === undefined && webhookUrl === undefined;
  if (isOver) return key;
  return revoked(rest, nowMs);
}

/** What an account is found by: names are looked for without regard to case. */
export function nameKeyOf(name: string): string {
  return name.normalize("NFKC").toLowerCase();
}

/** The key, ended. One that was revoked before keeps its first time. */
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
 * A secret as it is kept. One round of SHA-256 is enough: a secret is drawn at random (or at least 20 characters of an
 * operator's choice), so there is no dictionary to slow down, and the edge hashes one on every request.
 */
export function digestOf(secret: string): SecretDigest {
  return { sha256: createHash("sha256").update(secret).digest(), hint: secret.slice(-4) };
}

/** A hash as documents hold it. */
export function hashText(sha256: Uint8Array): string {
  return Buffer.from(sha256).toString("hex");
}
