// Lists the ranges of time of the charts, each within a page of the usage API.

import { days, startOfDay } from "./usage-sums.ts";

export type Width = "1h" | "1d";

/** Buckets of one page of the API. Every range below fits into one page. */
export const maxBuckets: Record<Width, number> = { "1h": 168, "1d": 31 };

export interface Range {
  /** The name in the address. */
  name: string;
  /** Seconds since 1970, whole days of UTC. */
  start: number;
  end: number;
  mayBeHours: boolean;
}

const monthName = new Intl.DateTimeFormat(undefined, {
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});
/** Months to choose from, this one included. */
const months = 13;

export function rangeOf(name: string | undefined, now = Date.now() / 1_000): Range {
  const today = startOfDay(now);
  const lastDays = (length: number, called: string): Range => ({
    name: called,
    start: today - (length - 1) * days,
    end: today + days,
    mayBeHours: length <= 7,
  });
  if (name === "1d") return lastDays(1, name);
  if (name === "7d") return lastDays(7, name);
  const month = /^(\d{4})-(\d{2})$/.exec(name ?? "");
  if (!month) return lastDays(31, "31d");
  const [year, number] = [Number(month[1]), Number(month[2]) - 1];
  return {
    name: month[0],
    start: Date.UTC(year, number) / 1_000,
    end: Date.UTC(year, number + 1) / 1_000,
    mayBeHours: false,
  };
}

export function rangeChoices(now = new Date()): { value: string; label: string }[] {
  const ofMonths = Array.from({ length: months }, (_, back) => {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back));
    return { value: first.toISOString().slice(0, 7), label: monthName.format(first) };
  });
  return [
    { value: "1d", label: "Today" },
    { value: "7d", label: "Last 7 days" },
    { value: "31d", label: "Last 31 days" },
    ...ofMonths,
  ];
}
