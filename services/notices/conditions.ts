// Looks at the metrics of this process for conditions that an operator must act on. So an installation without Prometheus has the
// chart's alerts too.

import { queuedJobSeconds } from "#common/documents/status-document.ts";
import { emptyForMs, failingShare } from "#common/documents/upstream-document.ts";
import type { MetricReading } from "#kit/base/figures.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamFigures } from "../upstreams/health/figures.ts";
import type { Condition, NoticeKind } from "./notice.ts";

/** The sources of a process. It sees its own conditions, and those of the whole installation. */
export interface Observed {
  metrics: Metrics;
  clock: Clock;
  role: string;
  /** Absent: this process calls no upstream. */
  health?: { read(): Promise<{ upstreams: UpstreamFigures[] }> } | undefined;
  /** Absent: this process needs no catalog. */
  catalog?: { isRefused(): boolean } | undefined;
}

/** A value of a metric, and how it came to that, in ms. */
interface Series {
  labels: Partial<Record<string, string | number>>;
  value: number;
  /** For how long it has not changed. */
  sameMs: number;
  /** For how long it has not grown. Infinite: it never did. */
  sinceGrowthMs: number;
  /** For how long it has grown again and again, with pauses of at most {@link pauseMs}. */
  growingMs: number;
}

/** When a metric of this process is a condition. The chart's alerts have the same thresholds. */
interface Rule {
  kind: NoticeKind;
  metric: string;
  holds(series: Series, now: number): boolean;
  subject(labels: Series["labels"], role: string): string;
}

const minuteMs = 60_000;
/** Longest pause of something that counts as going on. */
const pauseMs = 5 * minuteMs;
/** Below this number of requests in five minutes the share of errors says little. */
const fewestRequests = 5;
/** Ms before the end of a certificate in which it must be renewed. */
const renewBeforeMs = 14 * 24 * 60 * minuteMs;

const ofProcess = (what: string, role: string) => (role === "all" ? what : `${what} of ${role}`);
const standing = new Set(["reserving", "settling", "failing"]);

const rules: readonly Rule[] = [
  {
    kind: "store_away",
    metric: "genmesh_store_up",
    holds: ({ value }) => value === 0,
    subject: ({ store }, role) => ofProcess(`${store}`, role),
  },
  {
    kind: "queue_away",
    metric: "genmesh_queue_connected",
    holds: ({ value, sameMs }) => value === 0 && sameMs >= 2 * minuteMs,
    subject: (_, role) => role,
  },
  {
    kind: "upstream_account_empty",
    metric: "genmesh_upstream_account_empty_timestamp_seconds",
    holds: ({ value }, now) => now - value * 1_000 < emptyForMs,
    subject: ({ upstream }) => `${upstream}`,
  },
  {
    kind: "upstream_key_refused",
    metric: "genmesh_upstream_key_refused_timestamp_seconds",
    holds: ({ value }, now) => now - value * 1_000 < emptyForMs,
    subject: ({ upstream, key }) => `${upstream}, the key in ${key}`,
  },
  {
    kind: "upstream_state_unknown",
    metric: "genmesh_upstream_unknown_states_total",
    holds: ({ sinceGrowthMs }) => sinceGrowthMs < 15 * minuteMs,
    subject: ({ upstream }) => `${upstream}`,
  },
  {
    kind: "jobs_wait",
    metric: "genmesh_media_oldest_job_seconds",
    holds: ({ labels, value }) => labels.state === "queued" && value > queuedJobSeconds,
    subject: ({ kind }) => `${kind}`,
  },
  {
    kind: "jobs_stand",
    metric: "genmesh_media_oldest_job_seconds",
    holds: ({ labels, growingMs }) => standing.has(`${labels.state}`) && growingMs >= 10 * minuteMs,
    subject: ({ kind, state }) => `${kind}, ${state}`,
  },
  {
    kind: "holds_unanswered",
    metric: "genmesh_billing_owner_checks_total",
    holds: ({ labels, growingMs }) =>
      /^(failed|away)$/.test(`${labels.verdict}`) && growingMs >= 15 * minuteMs,
    subject: ({ owner }) => `${owner}`,
  },
  {
    kind: "usage_in_review",
    metric: "genmesh_text_reviews_total",
    holds: ({ sinceGrowthMs }) => sinceGrowthMs < 60 * minuteMs,
    subject: () => "",
  },
  {
    kind: "ledger_differs",
    metric: "genmesh_billing_audit_differences_total",
    holds: ({ sinceGrowthMs }) => sinceGrowthMs < 60 * minuteMs,
    subject: ({ field }) => `${field}`,
  },
  {
    kind: "files_unsigned",
    metric: "genmesh_media_marks_total",
    holds: ({ labels, sinceGrowthMs }) =>
      labels.outcome === "failed" && sinceGrowthMs < 30 * minuteMs,
    subject: ({ kind }) => `${kind}`,
  },
  {
    kind: "certificate_ends",
    metric: "genmesh_tls_certificate_end_timestamp_seconds",
    holds: ({ value }, now) => value * 1_000 - now < renewBeforeMs,
    subject: (_, role) => role,
  },
];

/** Makes a function that answers the conditions of this moment. It remembers what counters were at its earlier calls. */
export function createConditions(observed: Observed): () => Promise<Condition[]> {
  const { metrics, clock, role, health, catalog } = observed;
  const follow = createFollowing();
  return async () => {
    const found: Condition[] = [];
    for (const { kind, metric, holds, subject } of rules) {
      const reading = await metrics.readOne(metric);
      const here = follow(`${kind} `, reading?.values ?? [], clock.steady());
      for (const series of here) {
        if (holds(series, clock.now())) found.push({ kind, subject: subject(series.labels, role) });
      }
    }
    for (const { name, requests, errors } of (await health?.read())?.upstreams ?? []) {
      const fails = requests >= fewestRequests && errors / requests > failingShare;
      if (fails) found.push({ kind: "upstream_fails", subject: name });
    }
    if (catalog?.isRefused()) found.push({ kind: "catalog_refused", subject: "" });
    return found;
  };
}

interface Past {
  value: number;
  changedAtMs: number;
  grewAtMs: number;
  growingSinceMs: number;
}

/** Keeps what each series was. A series that is new was 0 before: events make the series of a counter. */
function createFollowing() {
  const pasts = new Map<string, Past>();
  return (prefix: string, values: MetricReading["values"], nowMs: number): Series[] =>
    values.map(({ labels, value }) => {
      const name = prefix + JSON.stringify(labels);
      const never = Number.NEGATIVE_INFINITY;
      const past = pasts.get(name) ?? {
        ...{ value: 0, changedAtMs: nowMs, grewAtMs: never, growingSinceMs: nowMs },
      };
      const grows = value > past.value;
      const goesOn = value >= past.value && nowMs - past.grewAtMs <= pauseMs;
      const is = {
        value,
        changedAtMs: value === past.value ? past.changedAtMs : nowMs,
        grewAtMs: grows ? nowMs : past.grewAtMs,
        growingSinceMs: goesOn ? past.growingSinceMs : nowMs,
      };
      pasts.set(name, is);
      return {
        ...{ labels, value },
        sameMs: nowMs - is.changedAtMs,
        sinceGrowthMs: nowMs - is.grewAtMs,
        growingMs: nowMs - is.growingSinceMs,
      };
    });
}
