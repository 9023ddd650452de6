// Declares the answers of the operator's routes, as the screens read them. `gateway/console/admin` writes them.

import type { Sum } from "../../format.ts";
import type { LimitReset, Model, Pricing, RequestRecord, Unit, Webhook } from "../../types.ts";

/** Only operators' sessions may use the routes below `/console/api/admin`. */
export const admin = "/console/api/admin";

/** A page of an operator's list. `next` is its cursor. */
export interface AdminList<T> {
  data: T[];
  next: string | null;
}

export interface AdminWallet {
  available: Sum;
  reserved: Sum;
  spendable: Sum;
  monthSpent: Sum;
  granted: Sum;
  spent: Sum;
}

/** A row of an account. A list has the account's name. Null: it is not known. */
export interface OfAccount {
  accountId: string;
  accountName?: string | null;
}

export interface Account {
  id: string;
  name: string;
  state: "active" | "suspended" | "closing" | "closed";
  createdAt: string;
  suspendedAt: string | null;
  closedAt: string | null;
  requestsPerMinute: number;
  /** False: the rate is the default. */
  rateIsSet: boolean;
  usdMicros: AdminWallet | null;
  credits: AdminWallet | null;
}

/** An account, with the fields that a list lacks. */
export interface AccountInFull extends Account {
  notes: string;
  monthlyGrant: { usdMicros: Sum; credits: Sum; nextAt: string } | null;
}

export interface LedgerEntry {
  accountId: string;
  unit: Unit;
  number: number;
  kind: string;
  holdId: string | null;
  ref: string | null;
  freeDelta: Sum;
  heldDelta: Sum;
  spentDelta: Sum;
  refundOf: number | null;
  /** Of a grant below 0: the number of the grant that it takes back. */
  takeBackOf: number | null;
  createdAt: string;
}

export interface AdminOperator {
  name: string;
  state: "active" | "disabled" | "pending";
  recoveryCodes: number;
  createdAt: string;
  signedInAt: string | null;
  linkEndsAt: string | null;
  codesRefusedUntil: string | null;
}

export interface AdminKey extends OfAccount {
  id: string;
  name: string;
  label: string;
  scopes: string[];
  models: string[];
  state: "active" | "disabled" | "expired" | "revoked";
  created_at: string;
  expires_at: string | null;
  lastUsedAt: string | null;
  limitUsdMicros: Sum | null;
  limit_reset: LimitReset | null;
  requestsPerMinute: number;
}

/** A key, with the fields that a list lacks. */
export interface AdminKeyInFull extends AdminKey {
  webhookUrl: string | null;
  lowBalanceUsdMicros: Sum | null;
}

export interface AdminJob extends OfAccount {
  id: string;
  keyId: string;
  kind: "image" | "video" | "music";
  model: string;
  status: string;
  progress: number;
  creditsReserved: Sum;
  creditsCharged: Sum | null;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  retryOf: string | null;
  error: string | null;
  errorCode: string | null;
}

export interface AdminJobDetails extends AdminJob {
  holdId: string;
  attempts: number;
  /** The upstream that served the job, or that is asked next. */
  upstream: string | null;
  events: { at: string; state: string; detail: string }[];
  wait: { reason: string; times: number; nextTryAt: string | null } | null;
  entries: LedgerEntry[];
}

export interface AdminAlerts {
  lowBalanceUsdMicros: Sum | null;
  webhookUrl: string | null;
}

/** Without the address, which may hold a secret of its receiver. */
export type AdminWebhook = Omit<Webhook, "url">;

/** A request or job of any account that ended. */
export interface AdminRequest extends RequestRecord, OfAccount {
  /** The upstream that answered. */
  upstream: string | null;
  /** The tries at upstreams that failed, the first one first. */
  failedTries: { upstream: string; failure: string; status: number | null }[];
  upstreamFailure: { kind: string; status: number | null } | null;
  unit: Unit;
  /** The number of its entry in the wallet. */
  entry: Sum;
}

export interface AdminHold extends OfAccount {
  id: string;
  unit: Unit;
  amount: Sum;
  kind: string;
  keyId: string;
  ref: string;
  openedAt: string;
  checkAt: string | null;
}

export interface Review extends OfAccount {
  requestId: string;
  holdId: string;
  model: string;
  reportedUsage: unknown;
  reviewedAt: string | null;
  chargedUsdMicros: Sum | null;
}

export interface LedgerAudit {
  ok: boolean;
  wallets: number;
  entries: number;
  differences: (OfAccount & {
    unit: Unit;
    field: string;
    entry: number | null;
    recorded: Sum;
    computed: Sum;
  })[];
  more: boolean;
}

export interface Catalog {
  version: string;
  models: CatalogModel[];
}

/** A model as callers see it, with the upstreams that serve it and the operator's own prices there. */
export interface CatalogModel extends Model {
  active: boolean;
  upstreamCost: Pricing | null;
  /** In their order: an upstream with each of its keys. */
  lanes: {
    name: string;
    /** The name of the variable or file that holds the key, or `stored:` and the name of a stored one. */
    key: string | null;
    /** From 1. A level has a request that no lane of the one before could answer. */
    level: number;
    /** Of the requests of its level, 0 to 1. */
    share: number;
    /** The upstream's name of the model. */
    model: string;
  }[];
}

export interface MarginRow {
  day: string | null;
  model: string | null;
  upstream: string | null;
  requests: number;
  spentUsdMicros: Sum;
  spentCredits: Sum;
  costedRequests: number;
  costedUsdMicros: Sum;
  upstreamCostUsdMicros: Sum;
  marginUsdMicros: Sum;
}

export interface CatalogCheck {
  ok: boolean;
  models: number;
  /** More fields differ than are listed. */
  isShortened: boolean;
  faults: { path: string; message: string }[];
  changes: {
    model: string;
    change: "added" | "removed" | "changed";
    fields: { path: string; before: unknown; after: unknown }[];
  }[];
}

/** A text of the catalog, and how it can be changed. */
export interface CatalogText {
  yaml: string;
  /** Null: it is a file's. */
  version: CatalogVersion | null;
  /** False: a file is the master. */
  isEditable: boolean;
  /** The number of the newest version. 0: there is none but the file's. */
  newest: number;
}

/** The stored keys of upstreams. */
export interface StoredKeys extends AdminList<StoredKey> {
  /** False: this installation has no secret to seal them with. */
  isOn: boolean;
}

/** A stored key, without its value. */
export interface StoredKey {
  name: string;
  /** Its last characters, where it is long. */
  hint: string | null;
  setAt: string;
  actor: string;
  upstreams: string[];
}

/** A version of the catalog, without its text. */
export interface CatalogVersion {
  /** 0: the file as it was when the first version was made. */
  number: number;
  actor: string | null;
  note: string | null;
  createdAt: string;
  models: number;
}

export interface Upstreams extends AdminList<Upstream> {
  /** The number of processes that reported. */
  processes: number;
}

/** Something that an operator must act on. */
export interface OperatorNotice {
  id: string;
  kind: string;
  subject: string;
  severity: "critical" | "warning";
  text: string;
  /** The section of the runbook. */
  alert: string | null;
  beganAt: string;
}

/** A way to tell operators. `failures` is the number in a row. */
export interface AlertWay {
  way: "webhook" | "mail";
  failures: number;
  lastAnswer: string | null;
  lastAttemptAt: string | null;
  lastDeliveredAt: string | null;
  nextAttemptAt: string | null;
}

/** A receiver's answer to a test. */
export interface AlertAnswer {
  way: AlertWay["way"];
  isDelivered: boolean;
  answer: string;
}

/** The answers of an upstream to an operator's question. */
export interface UpstreamProbe {
  ok: boolean;
  /** Null: its protocol has no list of models. `count` may be more than are named. */
  list: { fault: string | null; models: string[]; count: number } | null;
  /** Active models of the catalog that it serves. */
  models: number;
  faults: { model: string; message: string }[];
  durationMs: number;
}

export interface Upstream {
  name: string;
  protocol: string;
  state: "healthy" | "failing" | "account_empty" | "unknown";
  requests: number;
  errors: number;
  errorRate: number;
  latencyMs: { p50: number; p95: number } | null;
  inFlight: number;
  /** The most work in flight that one process has of one kind. `slots` is the bound of each of them. */
  busiest: number;
  slots: number | null;
  lastError: string | null;
  accountEmptyAt: string | null;
  /** Why it gets no requests at present. */
  resting: (
    | "failed"
    | "perhaps_paid"
    | "limited"
    | "account_empty"
    | "key_refused"
    | "region_refused"
    | "model_missing"
  )[];
  models: string[];
}

/** Figures of a time. */
export interface HistoryFigures {
  requests: number;
  errors: number;
  errorRate: number;
  /** The errors by their words. */
  errorKinds: Record<string, number>;
  /** To the first piece of a stream. */
  firstOutputMs: { p50: number; p95: number } | null;
  /** To the end of an answer. */
  latencyMs: { p50: number; p95: number } | null;
}

/** The last day or week of an upstream. */
export interface UpstreamHistory extends HistoryFigures {
  name: string;
  models: ({ id: string } & HistoryFigures)[];
  /** Each hour, the oldest first. `start` is in seconds since 1970. */
  hours: { start: number; requests: number; errors: number }[];
}

export interface AuditRecord {
  id: string;
  actor: string;
  action: string;
  accountId: string | null;
  accountName?: string | null;
  target: string | null;
  details: Record<string, unknown>;
  outcome: "done" | "refused" | "started";
  reason: string | null;
  createdAt: string;
  endedAt: string | null;
}
