import type { LoadResult } from "./load.ts";

/** One line of the bench: the same load without genmesh and with it. */
export interface Comparison {
  form: "JSON" | "stream";
  inFlight: number;
  direct: LoadResult;
  mesh: LoadResult;
  /** Microseconds of CPU that genmesh used for one request. */
  cpuMicros: number;
}

/** The figures as aligned columns. */
export function report(comparisons: readonly Comparison[]): string {
  return [
    title("requests a second"),
    table(
      ["", "direct", "genmesh", "ratio", "CPU a request", "requests/s of one core"],
      comparisons.map(({ direct, mesh, cpuMicros, ...one }) => [
        label(one),
        count(direct.requestsPerSecond),
        count(mesh.requestsPerSecond),
        ratio(mesh.requestsPerSecond / direct.requestsPerSecond),
        `${cpuMicros.toFixed(0)} µs`,
        count(1e6 / cpuMicros),
      ]),
    ),
    title("time of a whole answer, median (99th percentile)"),
    table(
      ["", "direct", "genmesh", "ratio", "added"],
      comparisons.map(({ direct, mesh, ...one }) => [
        label(one),
        both(direct.latencyMs),
        both(mesh.latencyMs),
        ratio(mesh.latencyMs.p50 / direct.latencyMs.p50),
        ms(mesh.latencyMs.p50 - direct.latencyMs.p50),
      ]),
    ),
    ...streams(comparisons),
  ].join("\n");
}

function streams(comparisons: readonly Comparison[]): string[] {
  const rows = comparisons.flatMap(({ direct, mesh, ...one }) => {
    if (direct.firstDeltaMs === undefined || mesh.firstDeltaMs === undefined) return [];
    return [
      [
        label(one),
        ms(direct.firstDeltaMs),
        ms(mesh.firstDeltaMs),
        ratio(mesh.firstDeltaMs / direct.firstDeltaMs),
        ms(mesh.firstDeltaMs - direct.firstDeltaMs),
        count(direct.deltasPerSecond),
        count(mesh.deltasPerSecond),
        ratio(mesh.deltasPerSecond / direct.deltasPerSecond),
      ],
    ];
  });
  if (rows.length === 0) return [];
  const head = ["", "direct", "genmesh", "ratio", "added", "deltas/s direct", "genmesh", "ratio"];
  return [title("streams: median time to the first delta, and deltas a second"), table(head, rows)];
}

function label({ form, inFlight }: Pick<Comparison, "form" | "inFlight">): string {
  return `${form}, ${inFlight} in flight`;
}

function title(text: string): string {
  return `\n${text}`;
}

function table(head: string[], rows: string[][]): string {
  const all = [head, ...rows];
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  const line = (row: string[]) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("   ");
  return all.map(line).join("\n");
}

function both({ p50, p99 }: { p50: number; p99: number }): string {
  return `${p50.toFixed(2)} (${p99.toFixed(1)}) ms`;
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}

function ratio(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(1);
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
