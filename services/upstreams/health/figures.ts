// Reads from a process's own metrics how its upstreams do, and adds such reports up. `index.ts` reports the last minutes, and
// `history.ts` keeps the last days.

import type { MetricReading } from "#kit/base/figures.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { callersErrors } from "#kit/telemetry/inference.ts";

/** Metrics of each process about its upstreams. The alerts use the same ones. */
const source = {
  ended: "genmesh_inference_duration_seconds",
  first: "genmesh_inference_first_chunk_seconds",
  active: "genmesh_inference_active",
  empty: "genmesh_upstream_account_empty_timestamp_seconds",
  resting: "genmesh_upstream_resting",
} as const;

/** The generations that have ended at an upstream. */
export interface Ended {
  requests: number;
  /** By the word for the fault. Callers' faults are left out. */
  errors: Counts;
  /** Generations that were answered within this many milliseconds, by the bounds of the histogram. */
  answeredWithin: Counts;
}

/** Numbers of generations, by an error's word or by a bound in milliseconds. */
export type Counts = Record<string, number>;

/** A process's report about an upstream. */
export interface UpstreamReport extends Ended {
  /** Its name in the catalog. */
  name: string;
  /** Generations that are under way. */
  inFlight: number;
  /** The most of these for one kind of work. Each kind has as many places as the catalog's `maxConcurrent`. */
  busiest: number;
  /** When the upstream last answered that the operator's account there is empty, in ms since the epoch. */
  emptyAtMs?: number | undefined;
  /** Why it gets no requests at present. Absent, as in reports of earlier releases: it gets some. */
  resting?: readonly string[] | undefined;
}

/** The state of an upstream, summed over all processes that use it. */
export interface UpstreamFigures {
  name: string;
  requests: number;
  errors: number;
  /** Median time of the answers in milliseconds, to the bound of the histogram. Undefined: there was no answer. */
  p50Ms: number | undefined;
  p95Ms: number | undefined;
  /** The most frequent error. "" for none. */
  lastError: string;
  /** Generations under way, of all processes. */
  inFlight: number;
  /** The same of the process that has most. */
  busiest: number;
  emptyAtMs: number | undefined;
  /** Why processes send it no requests at present, each reason once. */
  resting: readonly string[];
}

/** The counts of a process since its start, by upstream. */
export type Counted = ReadonlyMap<string, Ended>;

type Labels = MetricReading["values"][number]["labels"];
const upstreamOf = ({ provider }: Labels) => `${provider}`;

/** Reads the counts from the metric that /metrics shows and the alerts use: by upstream, or by another name made of its labels. */
export async function readEnded(
  metrics: Metrics,
  nameOf: (labels: Labels) => string = upstreamOf,
): Promise<Counted> {
  const counted = new Map<string, Ended>();
  const name = source.ended;
  for (const { labels, value, metricName } of await valuesOf(metrics, name)) {
    const { error, le } = labels;
    const ended = counted.get(nameOf(labels)) ?? noneEnded();
    counted.set(nameOf(labels), ended);
    if (metricName === `${name}_count`) {
      ended.requests += value;
      if (!callersErrors.has(`${error}`)) add(ended.errors, `${error}`, value);
    } else if (metricName === `${name}_bucket` && error === "" && le !== "+Inf") {
      add(ended.answeredWithin, boundOf(le), value);
    }
  }
  return counted;
}

/** Reads how many streams had their first piece within each bound, by a name made of the metric's labels. */
export async function readFirst(
  metrics: Metrics,
  nameOf: (labels: Labels) => string,
): Promise<ReadonlyMap<string, Counts>> {
  const counted = new Map<string, Counts>();
  const name = source.first;
  for (const { labels, value, metricName } of await valuesOf(metrics, name)) {
    if (metricName !== `${name}_bucket` || labels.le === "+Inf") continue;
    const within = counted.get(nameOf(labels)) ?? {};
    counted.set(nameOf(labels), within);
    add(within, boundOf(labels.le), value);
  }
  return counted;
}

/** A bound of a histogram in milliseconds. */
function boundOf(le: Labels[string]): string {
  return `${Math.round(Number(le) * 1_000)}`;
}

/** The part of a report that is of this moment. */
type Standing = Pick<UpstreamReport, "inFlight" | "busiest" | "emptyAtMs" | "resting">;

/** The present state: generations under way, upstreams whose accounts are empty, and upstreams that rest. */
export async function readStanding(metrics: Metrics) {
  const standing = new Map<string, Standing>();
  for (const { labels, value } of await valuesOf(metrics, source.active)) {
    const of = `${labels.provider}`;
    const { inFlight, busiest } = standing.get(of) ?? { inFlight: 0, busiest: 0 };
    standing.set(of, { inFlight: inFlight + value, busiest: Math.max(busiest, value) });
  }
  for (const { labels, value } of await valuesOf(metrics, source.empty)) {
    const of = `${labels.upstream}`;
    const known = standing.get(of) ?? { inFlight: 0, busiest: 0 };
    standing.set(of, { ...known, emptyAtMs: value * 1_000 });
  }
  for (const { labels, value } of await valuesOf(metrics, source.resting)) {
    if (value === 0) continue;
    const of = `${labels.lane}`;
    const { resting = [], ...known } = standing.get(of) ?? { inFlight: 0, busiest: 0 };
    standing.set(of, { ...known, resting: [...resting, `${labels.reason}`] });
  }
  return standing;
}

async function valuesOf(metrics: Metrics, name: string): Promise<MetricReading["values"]> {
  return (await metrics.readOne(name))?.values ?? [];
}

/** The generations that have ended between two readings. */
export function endedSince(counted: Counted, before: Counted): Map<string, Ended> {
  return new Map(
    [...counted].map(([name, ended]) => {
      const was = before.get(name) ?? noneEnded();
      const { requests, errors, answeredWithin } = ended;
      return [
        name,
        {
          requests: requests - was.requests,
          errors: less(errors, was.errors),
          answeredWithin: less(answeredWithin, was.answeredWithin),
        },
      ];
    }),
  );
}

/** The figures of all upstreams, in the order of their names. */
export function sumOf(reports: readonly UpstreamReport[]): UpstreamFigures[] {
  const byName = Map.groupBy(reports, ({ name }) => name);
  return [...byName]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, of]) => {
      const all = noneEnded();
      for (const { requests, errors, answeredWithin } of of) {
        all.requests += requests;
        addCounts(all.errors, errors);
        addCounts(all.answeredWithin, answeredWithin);
      }
      const errors = Object.entries(all.errors).filter(([, count]) => count > 0);
      const emptyAt = of.flatMap(({ emptyAtMs }) => (emptyAtMs === undefined ? [] : [emptyAtMs]));
      return {
        name,
        requests: all.requests,
        errors: errors.reduce((sum, [, count]) => sum + count, 0),
        ...latencyOf(all.answeredWithin),
        lastError: errors.sort((a, b) => b[1] - a[1])[0]?.[0] ?? "",
        inFlight: of.reduce((sum, { inFlight }) => sum + inFlight, 0),
        busiest: Math.max(...of.map(({ busiest }) => busiest)),
        emptyAtMs: emptyAt.length === 0 ? undefined : Math.max(...emptyAt),
        resting: [...new Set(of.flatMap(({ resting = [] }) => resting))].sort(),
      };
    });
}

/** Median and 95th percentile of a histogram, each at its upper bound. Undefined: it has no values. */
export function latencyOf(within: Counts): Pick<UpstreamFigures, "p50Ms" | "p95Ms"> {
  const rising = Object.entries(within)
    .map(([ms, count]) => [Number(ms), count] as const)
    .sort((a, b) => a[0] - b[0]);
  const answered = rising.at(-1)?.[1] ?? 0;
  const partOf = (part: number) =>
    answered === 0 ? undefined : rising.find(([, count]) => count >= answered * part)?.[0];
  return { p50Ms: partOf(0.5), p95Ms: partOf(0.95) };
}

function noneEnded(): Ended {
  return { requests: 0, errors: {}, answeredWithin: {} };
}

/** Adds counts to others. */
export function addCounts(to: Counts, counts: Counts): void {
  for (const [name, count] of Object.entries(counts)) add(to, name, count);
}

function add(counts: Counts, name: string, count: number): void {
  counts[name] = (counts[name] ?? 0) + count;
}

/** The difference of two readings of the same counts. */
export function less(counts: Counts, was: Counts): Counts {
  return Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, count - (was[name] ?? 0)]),
  );
}
