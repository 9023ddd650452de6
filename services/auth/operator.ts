// Says what an operator who signs in by name is, and how codes, links and sign-ins change one. It is pure: the methods make these
// changes in the store.

import {
  codesWithin,
  maxKnownClients,
  maxWrongCodes,
  recoveryCodeCount,
  setUpMs,
  wrongCodesMs,
} from "./operator-limits.ts";
import { hashSecret, recoveryCodeOf, stepOfCode } from "./totp.ts";

/** A password's hash by scrypt, with its parameters, which may rise for later passwords. */
export interface PasswordHash {
  /** Base64, like `hash`. */
  readonly salt: string;
  readonly hash: string;
  readonly cost: number;
  readonly blockSize: number;
  readonly parallelization: number;
}

/** A person who signs in by name, with a password and a code of an authenticator. */
export interface Operator {
  readonly name: string;
  readonly createdAtMs: number;
  /** Disabled operators cannot sign in. */
  readonly disabled?: true;
  /** Absent: the operator sets one up with a link. */
  readonly password?: PasswordHash;
  /** Absent: as above. `lastStep` is the time step of the last accepted code. Earlier codes, and that one, are over. */
  readonly totp?: { readonly secret: string; readonly lastStep: number };
  /** SHA-256 of each recovery code that is not used, hexadecimal. */
  readonly recovery: readonly string[];
  /** The link to set up what is absent, by the SHA-256 of its token. */
  readonly setUp?: { readonly sha256: string; readonly endsAtMs: number };
  /** Wrong codes that came with the right password. */
  readonly wrongCodes?: { readonly count: number; readonly sinceMs: number };
  /** Addresses of the last sign-ins, in the form of SignInLimits. */
  readonly clients: readonly string[];
  /** Sessions of another epoch are over. */
  readonly epoch: string;
  readonly signedInAtMs?: number;
}

/** The result of a code's check: the operator afterwards, and whether the code was right. */
export interface CodeCheck {
  readonly after: Operator;
  readonly isRight: boolean;
}

/**
 * Uses up a code of the authenticator, or a recovery code. Wrong ones are counted. Beyond a bound only recovery codes are accepted,
 * because they cannot be guessed.
 */
export function useCode(operator: Operator, code: string, nowMs: number): CodeCheck {
  const { wrongCodes: _counted, ...clean } = operator;
  const recoverySha256 = recoveryHash(code);
  if (recoverySha256 !== undefined && operator.recovery.includes(recoverySha256)) {
    const recovery = operator.recovery.filter((one) => one !== recoverySha256);
    return { after: { ...clean, recovery }, isRight: true };
  }
  if (codesRefusedUntil(operator, nowMs) !== undefined) return { after: operator, isRight: false };
  const { totp } = operator;
  const step = totp && stepOfCode(totp.secret, code, nowMs, codesWithin);
  if (totp && step !== undefined && step > totp.lastStep) {
    return { after: { ...clean, totp: { ...totp, lastStep: step } }, isRight: true };
  }
  const recent = recentWrongCodes(operator, nowMs);
  const wrongCodes = recent ? { ...recent, count: recent.count + 1 } : { count: 1, sinceMs: nowMs };
  return { after: { ...operator, wrongCodes }, isRight: false };
}

/** The end of the time in which codes of the authenticator are refused. Undefined: they are accepted. */
export function codesRefusedUntil(operator: Operator, nowMs: number): number | undefined {
  const recent = recentWrongCodes(operator, nowMs);
  return recent && recent.count >= maxWrongCodes ? recent.sinceMs + wrongCodesMs : undefined;
}

function recentWrongCodes({ wrongCodes }: Operator, nowMs: number) {
  return wrongCodes && nowMs - wrongCodes.sinceMs < wrongCodesMs ? wrongCodes : undefined;
}

/** The operator after a sign-in. */
export function signedIn(operator: Operator, client: string, nowMs: number): Operator {
  const others = operator.clients.filter((one) => one !== client);
  const clients = [client, ...others].slice(0, maxKnownClients);
  return { ...operator, clients, signedInAtMs: nowMs };
}

/** May this operator sign in now? */
export function isActive(operator: Operator): boolean {
  return !operator.disabled && operator.password !== undefined && operator.totp !== undefined;
}

/** The operator with a link, whose token has this hash. */
export function withLink(operator: Operator, sha256: string, nowMs: number): Operator {
  return { ...operator, setUp: { sha256, endsAtMs: nowMs + setUpMs } };
}

/** Is this the token of the operator's link, and is the link still valid? */
export function hasLink({ setUp, disabled }: Operator, token: string, nowMs: number): boolean {
  return !disabled && setUp?.sha256 === hashSecret(token) && nowMs < setUp.endsAtMs;
}

/** Makes recovery codes, and the hashes by which they are kept. */
export function newRecoveryCodes(): { codes: string[]; hashes: string[] } {
  const codes = Array.from({ length: recoveryCodeCount }, recoveryCodeOf);
  return { codes, hashes: codes.map((code) => recoveryHash(code) ?? "") };
}

/** The hash of a recovery code, however people write it. Undefined where it is none. */
function recoveryHash(code: string): string | undefined {
  const letters = code.toLowerCase().replace(/[\s-]/g, "");
  return /^[a-z2-7]{16}$/.test(letters) ? hashSecret(letters) : undefined;
}
