// Says which kinds of notices there are, and when one begins, lasts and is over. Any number of processes may see the same
// condition, and write one notice.

import { createHash } from "node:crypto";
import { overAfterMs, seenAgainMs } from "./limits.ts";

/** The facts of a kind of notice. */
interface KindFacts {
  severity: "critical" | "warning";
  /** The alert of the same condition in the chart. Its section of the runbook says what to do. */
  alert: string;
  /** One sentence. `subject` says what it is about. */
  says(subject: string): string;
}

/** All kinds of notices. Each has the condition of an alert in the chart, for installations without Prometheus. */
export const kinds = {
  store_away: {
    severity: "critical",
    alert: "GenmeshStoreAway",
    says: (store) => `A store does not do its work: ${store}.`,
  },
  queue_away: {
    severity: "warning",
    alert: "GenmeshQueueAway",
    says: (process) => `The queue's server is not reached: ${process}.`,
  },
  upstream_fails: {
    severity: "warning",
    alert: "GenmeshUpstreamFails",
    says: (upstream) => `Upstream ${upstream} fails more than a fifth of what is sent to it.`,
  },
  upstream_account_empty: {
    severity: "critical",
    alert: "GenmeshUpstreamAccountEmpty",
    says: (upstream) => `Your account at upstream ${upstream} is empty: nothing is made there.`,
  },
  upstream_key_refused: {
    severity: "critical",
    alert: "GenmeshUpstreamKeyRefused",
    says: (upstreamAndKey) => `An upstream does not accept a key: ${upstreamAndKey}.`,
  },
  upstream_state_unknown: {
    severity: "warning",
    alert: "GenmeshUpstreamStateUnknown",
    says: (upstream) =>
      `Upstream ${upstream} names states of tasks that the catalog does not have.`,
  },
  jobs_wait: {
    severity: "warning",
    alert: "GenmeshJobsWait",
    says: (kind) => `A job of kind ${kind} has waited more than five minutes for a worker.`,
  },
  jobs_stand: {
    severity: "warning",
    alert: "GenmeshJobsStand",
    says: (kindAndState) => `A job does not get out of its state: ${kindAndState}.`,
  },
  holds_unanswered: {
    severity: "warning",
    alert: "GenmeshHoldsUnanswered",
    says: (owner) => `${owner} gives no verdict on holds whose time has passed.`,
  },
  usage_in_review: {
    severity: "warning",
    alert: "GenmeshUsageInReview",
    says: () => "An upstream reported usage that cannot be. The count of genmesh was charged.",
  },
  ledger_differs: {
    severity: "critical",
    alert: "GenmeshLedgerDiffers",
    says: (field) => `An audit found that ${field} of a wallet is not what its entries say.`,
  },
  files_unsigned: {
    severity: "warning",
    alert: "GenmeshFilesUnsigned",
    says: (kind) => `Files of ${kind} jobs are stored without their content credentials.`,
  },
  catalog_refused: {
    severity: "warning",
    alert: "GenmeshCatalogRefused",
    says: () => "The catalog as it stands is broken. An earlier one is in force.",
  },
  certificate_ends: {
    severity: "critical",
    alert: "GenmeshCertificateEnds",
    says: (process) => `A TLS certificate ends within two weeks: ${process}.`,
  },
} as const satisfies Record<string, KindFacts>;

/** A kind of {@link kinds}. */
export type NoticeKind = keyof typeof kinds;

/** A condition that an operator must act on, as one process sees it. */
export interface Condition {
  kind: NoticeKind;
  /** Names of the catalog or of roles, never a caller's text. "": the kind says all. */
  subject: string;
}

/** A condition that lasts, seen by any number of processes. Times are ms since the epoch. */
export interface Notice extends Condition {
  /** Made of kind and subject, so that all processes write one. */
  noticeId: string;
  beganAt: number;
  seenAt: number;
}

/** A notice that no process has seen yet, as {@link seenAgain} begins from it. */
export function unseen({ kind, subject }: Condition): Notice {
  const hash = createHash("sha256").update(`${kind}\n${subject}`).digest("hex");
  return { noticeId: `ntc_${hash.slice(0, 24)}`, kind, subject, beganAt: 0, seenAt: 0 };
}

/** The notice after a process has seen it. Undefined: it was written lately. */
export function seenAgain(notice: Notice, now: number): Notice | undefined {
  if (isOver(notice, now)) return { ...notice, beganAt: now, seenAt: now };
  return now - notice.seenAt < seenAgainMs ? undefined : { ...notice, seenAt: now };
}

/** Has no process seen it lately? */
export function isOver({ seenAt }: Pick<Notice, "seenAt">, now: number): boolean {
  return now - seenAt > overAfterMs;
}

/** The facts of a kind. A later release may have written one that this release does not know. */
export function factsOf({ kind, subject }: { kind: string; subject: string }) {
  const known: Partial<Record<string, KindFacts>> = kinds;
  const { severity = "warning", alert = "", says } = known[kind] ?? {};
  return { severity, alert, text: says?.(subject) ?? `${kind}: ${subject}` };
}
