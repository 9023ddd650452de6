// Counts generations by hour, upstream and model, and makes the history that operators see of such counts. `history.ts` reads and
// stores them.

import type { Metrics } from "#kit/base/metrics.ts";
import {
  addCounts,
  type Counts,
  type Ended,
  endedSince,
  latencyOf,
  less,
  readEnded,
  readFirst,
  type UpstreamFigures,
} from "./figures.ts";

/** The generations that ended in an hour, or the tries at an upstream that failed. */
export interface HourCounts extends Ended {
  /** Streams whose first piece came within this many milliseconds, by the bounds of the histogram. */
  firstWithin: Counts;
}

/** The counts of an hour for one upstream and model, summed over all processes. */
export interface HourRow extends HourCounts {
  /** Seconds since the epoch at the beginning of the hour (UTC). */
  hour: number;
  /** Their names in the catalog. */
  upstream: string;
  model: string;
}

/** A row without its hour. */
export type RowCounts = Omit<HourRow, "hour">;
/** Counts of a process since its start, by upstream and model. */
export type CountedRows = ReadonlyMap<string, RowCounts>;

export const hourSeconds = 3_600;

/** Reads them from the metrics. */
export async function readRows(metrics: Metrics): Promise<CountedRows> {
  // No upstream's name has a colon.
  const nameOf = (labels: Readonly<Record<string, unknown>>) =>
    `${labels.provider}:${labels.model}`;
  const [ended, first] = await Promise.all([
    readEnded(metrics, nameOf),
    readFirst(metrics, nameOf),
  ]);
  const rows = [...ended].map(([name, counts]) => {
    const at = name.indexOf(":");
    const of = { upstream: name.slice(0, at), model: name.slice(at + 1) };
    return [name, { ...of, ...counts, firstWithin: first.get(name) ?? {} }] as const;
  });
  return new Map(rows);
}

/** The difference of two readings, without the rows that have nothing new. */
export function rowsSince(counted: CountedRows, before: CountedRows): CountedRows {
  const ended = endedSince(counted, before);
  const rows = [...counted].flatMap(([name, row]) => {
    const { requests, errors, answeredWithin } = ended.get(name) ?? row;
    const firstWithin = less(row.firstWithin, before.get(name)?.firstWithin ?? {});
    const counts = {
      errors: present(errors),
      answeredWithin: present(answeredWithin),
      firstWithin: present(firstWithin),
    };
    return requests === 0 ? [] : [[name, { ...row, requests, ...counts }] as const];
  });
  return new Map(rows);
}

/** An hour's counts together with further ones. */
export function sumOfCounts(one: HourCounts, other: HourCounts): HourCounts {
  const sum = noCounts();
  for (const { requests, errors, answeredWithin, firstWithin } of [one, other]) {
    sum.requests += requests;
    addCounts(sum.errors, errors);
    addCounts(sum.answeredWithin, answeredWithin);
    addCounts(sum.firstWithin, firstWithin);
  }
  return sum;
}

/** Counts of nothing. */
export function noCounts(): HourCounts {
  return { requests: 0, errors: {}, answeredWithin: {}, firstWithin: {} };
}

/** Figures of some hours together. */
export interface HistoryFigures {
  requests: number;
  errors: number;
  /** The errors by their words. */
  errorKinds: Counts;
  /** From sending a request to the first piece of its stream. Undefined: no stream had one. */
  first: Pick<UpstreamFigures, "p50Ms" | "p95Ms">;
  /** From sending a request to the end of its answer. Undefined: none was answered. */
  answered: Pick<UpstreamFigures, "p50Ms" | "p95Ms">;
}

/** An upstream's figures in a time: of all its models, of each of them, and of each hour. */
export interface UpstreamHistory {
  name: string;
  all: HistoryFigures;
  models: { id: string; figures: HistoryFigures }[];
  /** Every hour of the time, the oldest first. */
  hours: { start: number; requests: number; errors: number }[];
}

/** The history of each upstream, by name. `hours`: the beginnings of the hours that it covers. */
export function historyOf(rows: readonly HourRow[], hours: readonly number[]): UpstreamHistory[] {
  const byUpstream = Map.groupBy(rows, ({ upstream }) => upstream);
  return [...byUpstream].sort(byName).map(([name, of]) => {
    const byHour = Map.groupBy(of, ({ hour }) => hour);
    return {
      name,
      all: figuresOf(of),
      models: [...Map.groupBy(of, ({ model }) => model)]
        .sort(byName)
        .map(([id, rows]) => ({ id, figures: figuresOf(rows) })),
      hours: hours.map((start) => {
        const { requests, errors } = figuresOf(byHour.get(start) ?? []);
        return { start, requests, errors };
      }),
    };
  });
}

function figuresOf(rows: readonly HourCounts[]): HistoryFigures {
  const { requests, errors, answeredWithin, firstWithin } = rows.reduce(sumOfCounts, noCounts());
  return {
    requests,
    errors: Object.values(errors).reduce((sum, count) => sum + count, 0),
    errorKinds: errors,
    first: latencyOf(firstWithin),
    answered: latencyOf(answeredWithin),
  };
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}

function present(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}
