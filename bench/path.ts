import { readFileSync } from "node:fs";
import { textSteps } from "../test/contract/text-steps.ts";
import { jsonAnswer as anyAnswer, scriptedUpstreams } from "../test/contract/usage.upstream.ts";
import { importGraph, longestImportChain } from "../test/support/imports.ts";
import { houseFiles } from "../test/support/own-files.ts";
import { budgets } from "./budgets.ts";
import {
  bytesOf,
  type Calls,
  callCounter,
  inAll,
  promisesOf,
  statementsOf,
  usesOf,
} from "./path-counts.ts";
import { type Answer, type PathProcess, startPathProcess } from "./path-process.ts";

// The work on the way of a text request and of a delta, in one process of genmesh, beside the budgets for it. `--list` names the
// functions of a request for JSON, of a stream and of a delta.

const root = new URL("..", import.meta.url).href;
const [fewDeltas, manyDeltas] = [100, 500];
const few = { deltas: fewDeltas };
const many = { deltas: manyDeltas };
/** Rounds in which calls are counted, after one that is not counted. */
const callRounds = 5;
/** Requests before bytes are counted. V8 has compiled by then most of the code on their way, and compiled code makes fewer objects. */
const warmUp = { json: 400, streams: 25 };
/** Rounds in which bytes are counted. The median is printed, because V8 may compile or collect everything in one of them. */
const byteRounds = 5;
/** Requests of a round in which bytes are counted. Work that only some of them cause is shared by all. */
const ofRound = { json: 100, streams: 10 };
/** Rounds in which other things are counted. The least is printed, because a sweep of the product may fall into one of them. */
const countRounds = 5;
/** Requests of such a round. Work that comes in some of them is rounded away. */
const requestsOfRound = 10;
const input = "Tell me of the sea.";

type Row = [name: string, figure: number];
type Figures = Readonly<Record<string, number>>;

/** Figures of a request for JSON, of a stream, and of a delta. */
interface Ways<T> {
  json: T;
  stream: T;
  delta: T;
}

const nameOf: Ways<string> = {
  json: "a request for JSON",
  stream: `a stream of ${fewDeltas} deltas`,
  delta: "a delta",
};

/** The value with this share of all values below it. */
function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}

/** A share of the difference of two streams for each delta that one of them has more. */
const perDelta = (ofMany: number, ofFew: number) =>
  Math.round((ofMany - ofFew) / (manyDeltas - fewDeltas));

/** The functions on each way, and how often each is called. */
async function callsOfWays({ ask }: PathProcess): Promise<Ways<Calls>> {
  await using stack = new AsyncDisposableStack();
  const count = await callCounter(stack);
  const rounds = [];
  for (let round = 0; round <= callRounds; round++) {
    const json = await count(() => ask("json"));
    const stream = await count(() => ask(few));
    rounds.push({ json, stream, long: await count(() => ask(many)) });
  }
  rounds.shift();
  const stream = inAll(rounds.map((round) => round.stream));
  const long = inAll(rounds.map((round) => round.long));
  const delta = [...long].map(([place, calls]): Row => {
    return [place, perDelta(calls, stream.get(place) ?? 0)];
  });
  return {
    json: inAll(rounds.map(({ json }) => json)),
    stream,
    delta: new Map(delta.filter(([, calls]) => calls > 0)),
  };
}

function callFigures(calls: Calls): Figures {
  const files = new Set([...calls.keys()].map((place) => place.split(":")[0]));
  const sum = [...calls.values()].reduce((total, count) => total + count, 0);
  return { files: files.size, functions: calls.size, calls: sum };
}

async function byteFigures({ ask }: PathProcess): Promise<Ways<Figures>> {
  await ask("json", warmUp.json);
  await ask(many, warmUp.streams);
  const of = async (answer: Answer, times: number) =>
    (await bytesOf(() => ask(answer, times))) / times;
  const [json, stream, delta]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < byteRounds; round++) {
    json.push(await of("json", ofRound.json));
    const ofFew = await of(few, ofRound.streams);
    stream.push(ofFew);
    delta.push(perDelta(await of(many, ofRound.streams), ofFew));
  }
  const median = (values: number[]) => ({ bytes: Math.round(quantile(values, 0.5)) });
  return { json: median(json), stream: median(stream), delta: median(delta) };
}

/** The least of some rounds, for each request: the count of all requests without that of asking for none. */
async function leastOf(
  { ask }: PathProcess,
  answer: Answer,
  count: (work: () => Promise<void>) => Promise<number>,
): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < countRounds; round++) {
    const ofAsking = await count(() => ask(answer, 0));
    rounds.push((await count(() => ask(answer, requestsOfRound))) - ofAsking);
  }
  return Math.round(Math.min(...rounds) / requestsOfRound);
}

async function otherFigures(path: PathProcess, answer: Answer): Promise<Figures> {
  const uses = (...names: Parameters<typeof usesOf>[0]) =>
    leastOf(path, answer, (work) => usesOf(names, work));
  const sleeps = (work: () => Promise<void>) => path.sleepsOf(work);
  return {
    promises: await leastOf(path, answer, promisesOf),
    "SQL statements": await leastOf(path, answer, statementsOf),
    AbortControllers: await uses("AbortController"),
    timers: (await uses("setTimeout", "setInterval")) + (await leastOf(path, answer, sleeps)),
    "Sets and Maps": await uses("Set", "Map"),
  };
}

async function runRows(): Promise<{ rows: Row[]; calls: Ways<Calls> }> {
  await using stack = new AsyncDisposableStack();
  const path = await startPathProcess(stack);
  // Bytes come first and calls last, because counting promises and calls changes how V8 compiles.
  const bytes = await byteFigures(path);
  const ofStream = await otherFigures(path, few);
  const promisesOfMany = await leastOf(path, many, promisesOf);
  const others: Ways<Figures> = {
    json: await otherFigures(path, "json"),
    stream: ofStream,
    delta: { promises: perDelta(promisesOfMany, ofStream.promises ?? 0) },
  };
  const calls = await callsOfWays(path);
  const ways = ["json", "stream", "delta"] as const;
  const rows = ways.flatMap((way) => {
    const figures = { ...callFigures(calls[way]), ...bytes[way], ...others[way] };
    return Object.entries(figures).map(
      ([name, figure]): Row => [`${nameOf[way]}: ${name}`, figure],
    );
  });
  return { rows, calls };
}

/** The steps that `services/text/leases.test.ts` pins, requested in the same way. */
async function stepRows(): Promise<Row[]> {
  const upstreams = scriptedUpstreams(async () => anyAnswer());
  const steps = await textSteps(upstreams, (of) => of.ask("RESPONSES", { model: "chat-1", input }));
  const rows = (when: string, all: readonly string[]): Row[] => {
    const writes = all.filter((step) => step === "write").length;
    return [
      [`durable writes ${when}`, writes],
      [`calls of billing ${when}`, all.length - writes],
    ];
  };
  return [...rows("before a request is sent", steps.sent), ...rows("at its end", steps.told)];
}

function houseRows(): Row[] {
  const files = houseFiles();
  const lines = files.map(
    (file) => readFileSync(new URL(file, root), "utf8").split("\n").length - 1,
  );
  const chain = longestImportChain(importGraph(files, { values: true }));
  return [
    ["files of the product", files.length],
    ["their lines", lines.reduce((sum, count) => sum + count, 0)],
    ["lines of a file, median", quantile(lines, 0.5)],
    ["lines of a file, ninth decile", quantile(lines, 0.9)],
    ["longest chain of value imports", chain.length],
  ];
}

async function main(): Promise<void> {
  const { rows, calls } = await runRows();
  const all = [...rows, ...(await stepRows()), ...houseRows()];
  const table = all.map(([name, figure]) => {
    const most = budgets.find((budget) => budget.name === name)?.most ?? "";
    return `| ${name} | ${figure} | ${most} |`;
  });
  const head = ["| in one process | now | budget |", "| --- | --- | --- |"];
  process.stdout.write([...head, ...table, ""].join("\n"));
  if (!process.argv.includes("--list")) return;
  for (const way of ["json", "stream", "delta"] as const) {
    process.stdout.write(`\n${nameOf[way]}:\n`);
    for (const [place, count] of [...calls[way]].sort())
      process.stdout.write(`${count} ${place}\n`);
  }
}

await main();
