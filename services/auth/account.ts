import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { defaultAccountRequestsPerMinute } from "./limits.ts";

/** An owner of wallets, keys and uploads. */
export interface Account {
  readonly accountId: string;
  readonly name: string;
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

/** The account in its closing, without its name. An earlier start of the closing keeps its time. */
export function closing(account: Account, nowMs: number): Account {
  return account.closingAtMs === undefined ? { ...account, name: "", closingAtMs: nowMs } : account;
}

/** The closed account. Refuses an account that is not being closed with OPERATION_CONFLICT. */
export function closed(account: Account, nowMs: number): Account {
  if (account.closingAtMs === undefined) {
    refuse(ErrorReason.OPERATION_CONFLICT, { message: "The account is not being closed." });
  }
  return account.closedAtMs === undefined ? { ...account, closedAtMs: nowMs } : account;
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
