import { holdKindName, isoTimeOrNull, unitName } from "#common/documents/answer-values.ts";
import { type JobNames, jobNames, statusNames } from "#common/documents/job-document.ts";
import { limitResetWord } from "#common/words/key-limits.ts";
import { scopeName } from "#common/words/scopes.ts";
import type { Account, ApiKey, OperatorAction } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { ActionOutcome } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import {
  type Entry,
  EntryKind,
  type GetBalanceResponse,
  type Hold,
  type Wallet,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Job, JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Review } from "#proto/genmesh/text/v1/text_service_pb.ts";

// What operators are shown: ids, figures and names that operators gave. Never a prompt, an answer or a preview.

/** An account, with its wallets where billing answered. */
export function accountDocument(account: Account, balance: GetBalanceResponse | undefined) {
  return {
    object: "account",
    id: account.accountId,
    name: account.name,
    state: stateOf(account),
    createdAt: isoTimeOrNull(account.createTime),
    suspendedAt: isoTimeOrNull(account.suspendTime),
    closedAt: isoTimeOrNull(account.closeTime),
    requestsPerMinute: account.requestsPerMinute,
    usdMicros: walletDocument(balance?.usdMicros),
    credits: walletDocument(balance?.credits),
  };
}

function stateOf({ closeTime, closingTime, suspendTime }: Account): string {
  if (closeTime) return "closed";
  if (closingTime) return "closing";
  return suspendTime ? "suspended" : "active";
}

function walletDocument(wallet: Wallet | undefined) {
  if (!wallet) return null;
  const { available, reserved, spendable, monthSpent, granted, spent } = wallet;
  return { available, reserved, spendable, monthSpent, granted, spent };
}

const entryKinds = new Map<number, string>([
  [EntryKind.GRANT, "grant"],
  [EntryKind.HOLD, "hold"],
  [EntryKind.SETTLE, "settle"],
  [EntryKind.RELEASE, "release"],
  [EntryKind.EXTEND, "extend"],
  [EntryKind.DRAW, "draw"],
  [EntryKind.REFUND, "refund"],
]);

/** An entry of the ledger. */
export function entryDocument(entry: Entry) {
  return {
    object: "ledger.entry",
    accountId: entry.accountId,
    unit: unitName(entry.unit),
    number: entry.number,
    kind: entryKinds.get(entry.kind) ?? "",
    holdId: entry.holdId,
    ref: entry.ref,
    freeDelta: entry.freeDelta,
    heldDelta: entry.heldDelta,
    spentDelta: entry.spentDelta,
    refundOf: entry.refundOf === 0n ? null : entry.refundOf,
    createdAt: isoTimeOrNull(entry.time),
  };
}

/** A key without its secret, at `nowMs`. */
export function keyDocument(key: ApiKey, nowMs: number) {
  return {
    object: "key",
    id: key.keyId,
    accountId: key.accountId,
    name: key.name,
    hint: key.secretHint,
    scopes: key.scopes.map(scopeName),
    models: key.allowedModels,
    state: keyStateOf(key, nowMs),
    createdAt: isoTimeOrNull(key.createTime),
    expiresAt: isoTimeOrNull(key.expireTime),
    revokedAt: isoTimeOrNull(key.revokeTime),
    lastUsedAt: isoTimeOrNull(key.lastUseTime),
    limitUsdMicros: key.monthlyUsdMicrosLimit ?? null,
    limit_reset: key.monthlyUsdMicrosLimit === undefined ? null : limitResetWord(key.limitReset),
    requestsPerMinute: key.requestsPerMinute,
  };
}

function keyStateOf(key: ApiKey, nowMs: number): string {
  if (key.revokeTime) return "revoked";
  if (key.disabled) return "disabled";
  const expiresAt = isoTimeOrNull(key.expireTime);
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? "expired" : "active";
}

// A service of a later release may know more.
const jobKinds: Partial<Record<JobKind, JobNames>> = jobNames;
const jobStatuses: Partial<Record<JobStatus, string>> = statusNames;

/** A job. */
export function jobDocument(job: Job) {
  return {
    object: "job",
    id: job.jobId,
    accountId: job.accountId,
    keyId: job.keyId,
    kind: jobKinds[job.kind]?.name ?? "",
    model: job.model,
    status: jobStatuses[job.status] ?? "",
    progress: job.progress,
    creditsReserved: job.creditsReserved,
    creditsCharged: job.creditsCharged ?? null,
    createdAt: isoTimeOrNull(job.createTime),
    startedAt: isoTimeOrNull(job.startTime),
    completedAt: isoTimeOrNull(job.completeTime),
    retryOf: job.retryOf || null,
    error: job.error?.message ?? null,
  };
}

/** An open hold. */
export function holdDocument(hold: Hold) {
  return {
    object: "hold",
    id: hold.holdId,
    accountId: hold.accountId,
    unit: unitName(hold.unit),
    amount: hold.amount,
    kind: holdKindName(hold.kind),
    keyId: hold.keyId,
    ref: hold.ref,
    openedAt: isoTimeOrNull(hold.openTime),
    checkAt: isoTimeOrNull(hold.checkTime),
  };
}

/** Usage that was reported beyond belief. */
export function reviewDocument(review: Review) {
  return {
    object: "review",
    requestId: review.requestId,
    accountId: review.accountId,
    holdId: review.holdId,
    model: review.model,
    reportedUsage: parsed(review.reportedUsage),
    reviewedAt: isoTimeOrNull(review.reviewTime),
    chargedUsdMicros: review.chargedUsdMicros ?? null,
  };
}

const outcomes = new Map<number, string>([
  [ActionOutcome.DONE, "done"],
  [ActionOutcome.REFUSED, "refused"],
]);

/** A line of the audit log. */
export function actionDocument(action: OperatorAction) {
  return {
    object: "audit.record",
    id: action.actionId,
    actor: action.actor,
    action: action.action,
    accountId: action.accountId || null,
    target: action.target || null,
    details: parsed(action.details),
    outcome: outcomes.get(action.outcome) ?? "started",
    reason: action.reason || null,
    createdAt: isoTimeOrNull(action.beginTime),
    endedAt: isoTimeOrNull(action.endTime),
  };
}

/** JSON that a service wrote; the text where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
