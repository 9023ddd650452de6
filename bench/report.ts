import { type Goal, goals, type Round } from "./goals.ts";
import type { LineName } from "./lines.ts";
import { percentile } from "./load.ts";
import type { MemoryFigures } from "./memory.ts";
import type { Figure } from "./rounds.ts";
import type { TargetName } from "./target.ts";

/** All measurements. */
export type Results = ReadonlyMap<LineName | "starts", readonly Round[]>;

const head = [
  "",
  "",
  "direct",
  "Portkey",
  "GoModel",
  "LiteLLM",
  "floor",
  "one process",
  "ratio",
  "goal",
];
const meshHead = ["mesh", "ratio", "goal"];

/** Goals and figures side by side. They are medians of the rounds, ± half of the distance between the extremes. */
export function report(results: Results): string {
  const rows = goals
    .filter(({ line }) => results.has(line))
    .map((goal) => [
      goal.label,
      goal.unit,
      figure(goal, results, "direct"),
      figure(goal, results, "portkey"),
      figure(goal, results, "gomodel"),
      figure(goal, results, "litellm"),
      figure(goal, results, "floor-write"),
      ...judged(goal, results, "one"),
      ...judged(goal, results, "mesh"),
    ]);
  return table([[...head, ...meshHead], ...rows]);
}

/** Notes beside the goals: floors, raw stores, first starts, CPU time at rest, and memory in MiB behind the last line. */
export function notes(
  results: Results,
  firstStart: Round | undefined,
  rest: ReadonlyMap<string, number>,
  resident: ReadonlyMap<string, number>,
): string {
  const said: string[] = [];
  const note = (
    line: LineName,
    name: TargetName,
    figure: Figure,
    say: (text: string) => string,
  ) => {
    const values = (results.get(line) ?? []).map(
      (round) => round.get(name)?.[figure] ?? Number.NaN,
    );
    if (values.some((value) => !Number.isNaN(value))) said.push(say(withSpread(values)));
  };
  said.push(...layersIn(results));
  note(
    "latency",
    "writes",
    "p50Ms",
    (ms) =>
      `floor of the mesh's database, two durable writes by the driver alone, one after the other: ${ms} ms`,
  );
  note(
    "ranges",
    "folder",
    "megabytesPerSecond",
    (mb) => `raw store of one process, a file over node:http: ${mb} MB/s`,
  );
  note(
    "ranges",
    "bucket",
    "megabytesPerSecond",
    (mb) => `raw store of the mesh, the bucket itself: ${mb} MB/s`,
  );
  const first = firstStart?.get("one")?.startMs;
  if (first !== undefined)
    said.push(`first start of one process, nothing compiled yet: ${number(first)} ms`);
  const shares = [...rest].map(([name, share]) => `${name} ${number(share * 100)} %`);
  if (shares.length > 0) said.push(`of a core, with nothing to do: ${shares.join(", ")}`);
  const sizes = [...resident].map(([name, mib]) => `${name} ${number(mib)}`);
  if (sizes.length > 0) said.push(`resident behind the last line, MiB: ${sizes.join(", ")}`);
  return [...said, ...failuresIn(results)].join("\n");
}

/** Figures are about correct answers only. So the report names targets with failures. */
function failuresIn(results: Results): string[] {
  return [...results].flatMap(([line, rounds]) => {
    const names = [...(rounds[0]?.keys() ?? [])];
    return names.flatMap((name) => {
      const counts = rounds.map((round) => round.get(name)?.failures ?? 0);
      const failures = counts.reduce((sum, count) => sum + count, 0);
      return failures > 0 ? [`FAILED: ${failures} answers of ${name} in ${line}`] : [];
    });
  });
}

/** Bounds of one process's memory, in MiB: as small machines and pods have it. */
const memoryGoals = {
  afterLoad: 300e6 / 2 ** 20,
  largeImages: 600e6 / 2 ** 20,
  atRest: 300e6 / 2 ** 20,
  /** Two rests behind the same load differ by as much. */
  addedByRound: 16,
};

/** Memory of one process with its decoders, and its bounds. */
export function memoryReport(figures: MemoryFigures): string {
  const { idle, afterLoad, largeImages, afterImages } = figures;
  const worst = figures.rounds.flatMap(({ most, after, atRest }, i, { [i - 1]: before }) => [
    [`in round ${i + 1} of the worst images, at most`, most] as const,
    [`after round ${i + 1}`, after] as const,
    [`at rest behind round ${i + 1}`, atRest, memoryGoals.atRest] as const,
    ...(before
      ? [[`added by round ${i + 1}`, atRest - before.atRest, memoryGoals.addedByRound] as const]
      : []),
  ]);
  const rows: (readonly [label: string, value: number, goal?: number])[] = [
    ["with nothing to do", idle],
    ["after a load", afterLoad, memoryGoals.afterLoad],
    ["images of 50 megapixels at once, at most", largeImages, memoryGoals.largeImages],
    ["after them", afterImages],
    ...worst,
  ];
  return rows
    .map(([label, value, goal]) => {
      const judged =
        goal === undefined ? "" : `, goal ≤ ${number(goal)} ${value <= goal ? "met" : "MISSED"}`;
      return `memory of one process, ${label}: ${number(value)} MiB${judged}`;
    })
    .join("\n");
}

function figure(goal: Goal, results: Results, name: TargetName): string {
  // The model server alone adds nothing to itself.
  const values = (results.get(goal.line) ?? []).map((round) => goal.value(round, name));
  return values.every((value) => value === 0) ? "–" : withSpread(values);
}

/** The cost of each layer of the floor, and what genmesh adds to all of them: CPU time of a JSON request at 32 in flight. */
function layersIn(results: Results): string[] {
  const rounds = results.get("layers") ?? [];
  const microsOf = (name: TargetName) =>
    median(rounds.map((round) => 1e6 / (round.get(name)?.requestsPerCoreSecond ?? Number.NaN)));
  let before = 0;
  const rows = Object.entries(layerLabels).map(([name, label]) => {
    const micros = microsOf(name as TargetName);
    const added = micros - before;
    before = micros;
    return [label, "", `${number(added)} µs`, `${number(micros)} µs`];
  });
  if (rounds.length === 0) return [];
  return [`what each layer costs of a core, a JSON request at 32 in flight\n${table(rows)}`];
}

const layerLabels: Partial<Record<TargetName, string>> = {
  "floor-answer": "Fastify takes a body and answers from memory",
  "floor-parse": "its JSON parsed, and written anew",
  "floor-forward": "the model server asked, its answer parsed and written anew",
  "floor-write": "one durable write in SQLite, shared within a turn",
  one: "genmesh: the rest",
};

function judged(goal: Goal, results: Results, name: "one" | "mesh"): [string, string, string] {
  const ratios = ratiosOf(goal, results, name);
  const shown = [figure(goal, results, name), withSpread(ratios)] as const;
  if (name === "mesh" && goal.meshAtMost !== undefined) {
    const values = (results.get(goal.line) ?? []).map((round) => goal.value(round, name));
    return [...shown, verdict(goal, goal.meshAtMost, median(values), ` ${goal.unit}`)];
  }
  return [...shown, verdict(goal, goal[name], median(ratios))];
}

function ratiosOf(goal: Goal, results: Results, name: "one" | "mesh"): number[] {
  const rounds = results.get(goal.line) ?? [];
  return rounds.map((round) => goal.value(round, name) / baseOf(goal, results, name, round));
}

function baseOf(goal: Goal, results: Results, name: "one" | "mesh", round: Round): number {
  if (goal.base === "own JSON") {
    return median((results.get("json") ?? []).map((other) => goal.value(other, name)));
  }
  if (goal.base === "raw store") return goal.value(round, name === "one" ? "folder" : "bucket");
  return goal.value(round, goal.base);
}

function verdict(
  { isMoreBetter }: Goal,
  wanted: number | undefined,
  reached: number,
  unit = "",
): string {
  if (wanted === undefined) return "–";
  const goal = `${isMoreBetter ? "≥" : "≤"} ${wanted}${unit}`;
  if (Number.isNaN(reached)) return goal;
  return `${goal} ${(isMoreBetter ? reached >= wanted : reached <= wanted) ? "met" : "MISSED"}`;
}

function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

function withSpread(values: readonly number[]): string {
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length === 0) return "–";
  const middle = median(known);
  const spread = (Math.max(...known) - Math.min(...known)) / 2 / Math.abs(middle);
  return `${number(middle)} ±${Math.round(spread * 100)}%`;
}

function number(value: number): string {
  const digits =
    Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  const cell = (text: string, i: number) =>
    i < 2 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0);
  return rows.map((row) => row.map(cell).join("  ").trimEnd()).join("\n");
}
