// Shows an account to operators in the console, and to scripts of the command.

import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type {
  GetBalanceResponse,
  MonthlyGrant,
  Wallet,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { isoTime, isoTimeOrNull } from "./answer-values.ts";

/** One account as operators see it in the console, with its wallets where billing answered. A list lacks notes and monthly grant. */
export function accountDocument(
  account: Account,
  balance: GetBalanceResponse | undefined,
  grant: MonthlyGrant | undefined,
) {
  return {
    ...listedAccountDocument(account, balance),
    notes: account.notes,
    monthlyGrant: monthlyGrantDocument(grant),
  };
}

/** An account's monthly grant. Null: none. */
export function monthlyGrantDocument(grant: MonthlyGrant | undefined) {
  if (!grant) return null;
  const { usdMicros, credits, nextTime } = grant;
  return { usdMicros, credits, nextAt: isoTimeOrNull(nextTime) };
}

/** An account in the console's list of them. */
export function listedAccountDocument(account: Account, balance: GetBalanceResponse | undefined) {
  return {
    object: "account",
    id: account.accountId,
    name: account.name,
    state: accountState(account),
    createdAt: isoTimeOrNull(account.createTime),
    suspendedAt: isoTimeOrNull(account.suspendTime),
    closedAt: isoTimeOrNull(account.closeTime),
    requestsPerMinute: account.requestsPerMinute,
    rateIsSet: account.rateIsSet,
    usdMicros: walletDocument(balance?.usdMicros),
    credits: walletDocument(balance?.credits),
  };
}

/** The state of an account in a word. */
export function accountState({ closeTime, closingTime, suspendTime }: Account) {
  if (closeTime) return "closed";
  if (closingTime) return "closing";
  return suspendTime ? "suspended" : "active";
}

function walletDocument(wallet: Wallet | undefined) {
  if (!wallet) return null;
  const { available, reserved, spendable, monthSpent, granted, spent } = wallet;
  return { available, reserved, spendable, monthSpent, granted, spent };
}

/** An account as the command prints it for scripts, in a list of them. */
export function printedAccount(account: Account) {
  return {
    accountId: account.accountId,
    name: account.name,
    createdAt: isoTime(account.createTime),
    requestsPerMinute: account.requestsPerMinute,
    rateIsSet: account.rateIsSet,
    suspendedAt: account.suspendTime && isoTime(account.suspendTime),
    ...(account.closingTime ? { closingAt: isoTime(account.closingTime) } : {}),
    ...(account.closeTime ? { closedAt: isoTime(account.closeTime) } : {}),
  };
}

/** An account's wallets as the command prints them for scripts; one without entries has zeros. */
export function printedWallets({ usdMicros, credits }: GetBalanceResponse) {
  return { usdMicros: printedWallet(usdMicros), credits: printedWallet(credits) };
}

function printedWallet(wallet: Wallet | undefined) {
  return {
    available: wallet?.available ?? 0n,
    reserved: wallet?.reserved ?? 0n,
    spendable: wallet?.spendable ?? 0n,
    monthSpent: wallet?.monthSpent ?? 0n,
  };
}
