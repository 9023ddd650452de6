// Adds up usage for charts and tables, in exact integers.

import type { UsageBucket, UsageResult } from "./types.ts";

/** Seconds of a day, the unit of the usage API's times. */
export const days = 86_400;

export function startOfDay(seconds: number): number {
  return Math.floor(seconds / days) * days;
}

/** The figures that the chart can show. */
export interface Figures {
  field: string;
  label: string;
  unit: "usd" | "count";
  figureOf(result: UsageResult): number;
}

export const figures: readonly [Figures, ...Figures[]] = [
  {
    field: "usd",
    label: "Dollars",
    unit: "usd",
    figureOf: (one) => one.spentUsdMicros,
  },
  { field: "credits", label: "Credits", unit: "count", figureOf: (one) => one.spentCredits },
  {
    field: "requests",
    label: "Requests",
    unit: "count",
    figureOf: (one) => one.num_model_requests,
  },
  {
    field: "tokens",
    label: "Tokens",
    unit: "count",
    figureOf: (one) => one.input_tokens + one.output_tokens,
  },
];

/** Integers are added as integers, so sums are exact up to nine billion dollars. */
export function sum(
  buckets: readonly UsageBucket[],
  figureOf: (result: UsageResult) => number,
): number {
  let total = 0;
  for (const { results } of buckets) for (const one of results) total += figureOf(one);
  return total;
}

export interface Group {
  /** The group's value in the results: a model, a key's id or a kind. */
  value: string;
  name: string;
  results: readonly UsageResult[];
}

/** The usage of each model (or key, or kind), the most expensive first. */
export function groupsOf(
  buckets: readonly UsageBucket[],
  by: "model" | "api_key_id" | "kind",
  keyNames: ReadonlyMap<string, string>,
): Group[] {
  const found = new Map<string, UsageResult[]>();
  for (const result of buckets.flatMap((bucket) => bucket.results)) {
    const value = result[by] ?? "";
    const results = found.get(value) ?? [];
    results.push(result);
    found.set(value, results);
  }
  const total = (results: readonly UsageResult[], figureOf: (one: UsageResult) => number) =>
    results.reduce((before, one) => before + figureOf(one), 0);
  return [...found]
    .map(([value, results]) => ({
      value,
      name: (by === "api_key_id" ? keyNames.get(value) : undefined) || value || "not recorded",
      results,
    }))
    .sort(
      (one, other) =>
        total(other.results, (result) => result.spentUsdMicros) -
          total(one.results, (result) => result.spentUsdMicros) ||
        total(other.results, (result) => result.spentCredits) -
          total(one.results, (result) => result.spentCredits),
    );
}

/** As many series as there are colours. All other groups together are one series. */
const maxSeries = 7;

/** One figure of each group for each bucket. */
export function seriesOf(
  buckets: readonly UsageBucket[],
  groups: readonly Group[],
  figureOf: (result: UsageResult) => number,
): { name: string; values: number[] }[] {
  const fits = groups.length <= maxSeries;
  const alone = fits ? groups : groups.slice(0, maxSeries - 1);
  const others = fits ? [] : groups.slice(maxSeries - 1);
  const valuesOf = (some: readonly Group[]) => {
    const mine = new Set(some.flatMap((group) => group.results));
    return buckets.map(({ results }) =>
      results.reduce((before, one) => before + (mine.has(one) ? figureOf(one) : 0), 0),
    );
  };
  return [
    ...alone.map((group) => ({ name: group.name, values: valuesOf([group]) })),
    ...(others.length > 0 ? [{ name: `${others.length} others`, values: valuesOf(others) }] : []),
  ];
}
