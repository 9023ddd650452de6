// Decides what may happen to an account, and when: suspended, closing, closed. It is pure: `store.ts` keeps accounts.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { defaultAccountRequestsPerMinute } from "./limits.ts";

/** An owner of wallets, keys and uploads. */
export interface Account {
  readonly accountId: string;
  readonly name: string;
  /** The name in the call that made it, where it has been renamed since. A repeat of that call has it. */
  readonly firstName?: string;
  /** The operators' notes about it. No caller sees them. */
  readonly notes?: string;
  readonly createdAtMs: number;
  /** For all its keys together. A key with more raises it, unless the rate is set. */
  readonly requestsPerMinute: number;
  /** An operator set the rate. So it bounds each key, too. */
  readonly rateIsSet?: true;
  /** Since then its keys may only read. Absent where the account is active. */
  readonly suspendedAtMs?: number;
  /** Since then its keys are invalid for good, and its name is erased. Absent where the account is not being closed. */
  readonly closingAtMs?: number;
  /** Since then only its ids and ledger are left. */
  readonly closedAtMs?: number;
}

/**
 * The account, suspended or active. A state that it has already keeps its time. Refuses an account that is being closed with
 * OPERATION_CONFLICT.
 */
export function withState(account: Account, suspended: boolean, nowMs: number): Account {
  refuseClosing(account);
  const { suspendedAtMs, ...rest } = account;
  if (!suspended) return suspendedAtMs === undefined ? account : rest;
  return suspendedAtMs === undefined ? { ...rest, suspendedAtMs: nowMs } : account;
}

/** Refuses an account that is closed, or is being closed, with OPERATION_CONFLICT. */
export function refuseClosing({ closingAtMs }: Account): void {
  if (closingAtMs === undefined) return;
  refuse(ErrorReason.OPERATION_CONFLICT, { message: "The account is closed, or being closed." });
}

/** The account in its closing, without texts that people wrote. An earlier start of the closing keeps its time. */
export function closing(account: Account, nowMs: number): Account {
  if (account.closingAtMs !== undefined) return account;
  return { ...withoutTexts(account), closingAtMs: nowMs };
}

function withoutTexts({ firstName: _, notes: _notes, ...rest }: Account): Account {
  return { ...rest, name: "" };
}

/** The closed account. Refuses an account that is not being closed with OPERATION_CONFLICT. */
export function closed(account: Account, nowMs: number): Account {
  if (account.closingAtMs === undefined) {
    refuse(ErrorReason.OPERATION_CONFLICT, { message: "The account is not being closed." });
  }
  if (account.closedAtMs !== undefined) return account;
  // A process of an earlier version, which knows no notes, may have begun the closing.
  return { ...withoutTexts(account), closedAtMs: nowMs };
}

/** The form of a name by which accounts are found. Upper and lower case are the same. */
export function nameKeyOf(name: string): string {
  return name.normalize("NFKC").toLowerCase();
}

/** The account with a rate for all of its keys together, in requests a minute. Null means the default. */
export function withRate(account: Account, rate: number | null): Account {
  const { rateIsSet, ...rest } = account;
  if (rate === null) return { ...rest, requestsPerMinute: defaultAccountRequestsPerMinute };
  return { ...rest, requestsPerMinute: rate, rateIsSet: true };
}

/** The account under another name. */
export function withName(account: Account, name: string): Account {
  if (name === account.name) return account;
  return { ...account, name, firstName: account.firstName ?? account.name };
}

/** The account with other notes. "" means none. */
export function withNotes(account: Account, notes: string): Account {
  const { notes: _, ...rest } = account;
  return notes === "" ? rest : { ...rest, notes };
}
