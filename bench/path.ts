import { createHook } from "node:async_hooks";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type Profiler, Session } from "node:inspector/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { createLogger } from "#kit/base/logger.ts";
import { type Clock, manualClock, systemClock } from "#kit/time/clock.ts";
import { envToConfig } from "../services/host/config.ts";
import { startMesh } from "../services/host/mesh.ts";
import { textSteps } from "../test/contract/text-steps.ts";
import { jsonAnswer as anyAnswer, scriptedUpstreams } from "../test/contract/usage.upstream.ts";
import { importGraph, longestImportChain } from "../test/support/imports.ts";
import { houseFiles } from "../test/support/own-files.ts";
import { catalogFor } from "./accounts.ts";
import { jsonAnswer, streamAnswer } from "./answers.ts";
import { scratchFolder } from "./genmesh.ts";
import { models } from "./requests.ts";

// The product's functions on the way of a text request and of a delta, in one process of genmesh. `--list` names the functions of a delta.

const root = new URL("..", import.meta.url).href;
const [fewDeltas, manyDeltas] = [100, 500];
/** Rounds of each request, after one that is not counted. A function that runs only in some of them is not on their way. */
const rounds = 3;
const key = "key-of-the-bench-for-paths";
const input = "Tell me of the sea.";

/** The number of calls of each function, by its place and name. */
type Calls = ReadonlyMap<string, number>;
type Row = [name: string, figure: number];

/** The upstream, a process of its own. It sends its port, then a message for each request, and answers with the given pieces. */
function serve(): void {
  let reply: ServerResponse | undefined;
  const server = createServer((asked, response) => {
    reply = response;
    asked.resume().on("end", () => process.send?.("asked"));
  });
  process.on("message", ({ bytes, isLast }: { bytes: string; isLast: boolean }) => {
    const type = bytes.startsWith("{") ? "application/json" : "text/event-stream";
    if (!reply?.headersSent) reply?.writeHead(200, { "content-type": type });
    if (isLast) reply?.end(bytes);
    else reply?.write(bytes);
  });
  process.on("disconnect", () => server.close().closeAllConnections());
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
}

const eventsIn = (text: string) => text.split("\n\n").length - 1;

/**
 * Sends one request. The upstream sends a piece after the caller has the one before, so that each passes alone. `onSend` is called before
 * each.
 */
async function ask(url: string, upstream: ChildProcess, pieces: Buffer[], onSend: () => void) {
  const left = [...pieces];
  let sentEvents = 0;
  const send = () => {
    const bytes = left.shift()?.toString();
    if (bytes === undefined) return;
    onSend();
    sentEvents += eventsIn(bytes);
    upstream.send({ bytes, isLast: left.length === 0 });
  };
  upstream.once("message", send);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const call = request(`${url}/responses`, { method: "POST", headers });
  call.end(JSON.stringify({ model: models.chat, input, stream: pieces.length > 1 }));
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  let text = "";
  answer.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    if (eventsIn(text) >= sentEvents) send();
  });
  await once(answer, "end");
  if (!text.includes('"completed"')) throw new Error(`it was answered ${text.slice(-1_000)}`);
  // Work after an answer's end in its process is soon done.
  for (let turns = 0; turns < 10; turns++) await turn();
}

/** The machine's clock until it is stopped. Then no timer fires during a measurement, however long that takes. */
function stoppableClock(): Clock & { stop(): void } {
  let clock = systemClock;
  return {
    now: () => clock.now(),
    steady: () => clock.steady(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    stop() {
      const steadyMs = clock.steady();
      clock = { ...manualClock(clock.now()), steady: () => steadyMs };
    },
  };
}

/**
 * Starts genmesh in this process, and its upstream. The result sends requests. It answers the calls, and the promises from each piece to
 * the next.
 */
async function startRuns(stack: AsyncDisposableStack) {
  const upstream = fork(import.meta.filename, ["--serve"]);
  stack.defer(() => upstream.disconnect());
  const [port] = await once(upstream, "message");
  const folder = await scratchFolder(stack);
  const catalog = join(folder, "catalog.json");
  await writeFile(catalog, JSON.stringify(catalogFor(port)));
  const config = envToConfig({
    ...{ PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0" },
    ...{ GENMESH_DATA_DIR: join(folder, "data"), GENMESH_CATALOG: catalog },
    ...{ GENMESH_BOOTSTRAP_API_KEY: key, GENMESH_BOOTSTRAP_USD_MICROS: "1000000000" },
  });
  const clock = stoppableClock();
  const options = { log: createLogger("silent"), signal: new AbortController().signal, clock };
  const { baseUrl } = stack.use(await startMesh(config, options));
  clock.stop();
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return async (pieces: Buffer[]): Promise<{ calls: Calls; promises: number[] }> => {
    // A look sets the counts to 0.
    await session.post("Profiler.takePreciseCoverage");
    let made = 0;
    const before: number[] = [];
    const hook = createHook({
      init(_, type) {
        if (type === "PROMISE") made++;
      },
    });
    hook.enable();
    await ask(baseUrl, upstream, pieces, () => before.push(made));
    hook.disable();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const promises = before.slice(1).map((count, at) => count - (before[at] ?? 0));
    return { calls: new Map(result.flatMap(callsIn)), promises };
  };
}

/** Functions of the product that ran, without the bodies of modules. */
function callsIn({ url, functions }: Profiler.ScriptCoverage): Row[] {
  const file = url.startsWith(root) ? url.slice(root.length) : "";
  if (!/^(services|gateway)\//.test(file)) return [];
  const source = readFileSync(new URL(url), "utf8");
  return functions.flatMap(({ functionName, ranges: [range] }): Row[] => {
    if (!range || range.count === 0 || range.startOffset === 0) return [];
    const lines = source.slice(0, range.startOffset + 1).split("\n");
    return [[`${file}:${lines.length}:${lines.at(-1)?.length} ${functionName}`, range.count]];
  });
}

/** Calls that are in each of these runs, with their least number. */
function inAll(runs: readonly { calls: Calls }[]): Calls {
  const least = [...(runs[0]?.calls.keys() ?? [])].map((name): Row => {
    return [name, Math.min(...runs.map(({ calls }) => calls.get(name) ?? 0))];
  });
  return new Map(least.filter(([, count]) => count > 0));
}

function pathRows(name: string, calls: Calls): Row[] {
  const files = new Set([...calls.keys()].map((place) => place.split(":")[0]));
  return [
    [`${name}: files`, files.size],
    [`${name}: functions`, calls.size],
  ];
}

/** The value with this share of all values below it. */
function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}

async function runRows(): Promise<{ rows: Row[]; delta: Calls }> {
  await using stack = new AsyncDisposableStack();
  const run = await startRuns(stack);
  const stream = ({ head, deltas, tail }: ReturnType<typeof streamAnswer>) =>
    run([head, ...deltas, tail]);
  const all = [];
  for (let round = 0; round <= rounds; round++) {
    const json = await run([jsonAnswer()]);
    const few = await stream(streamAnswer(fewDeltas));
    all.push({ json, few, many: await stream(streamAnswer(manyDeltas)) });
  }
  const counted = all.slice(1);
  const few = inAll(counted.map((round) => round.few));
  const delta = [...inAll(counted.map(({ many }) => many))].map(([name, count]): Row => {
    const more = count - (few.get(name) ?? 0);
    return [name, Math.round(more / (manyDeltas - fewDeltas))];
  });
  const ofDelta = new Map(delta.filter(([, count]) => count > 0));
  const promises = counted.flatMap(({ many }) => many.promises);
  return {
    delta: ofDelta,
    rows: [
      ...pathRows("a request for JSON", inAll(counted.map(({ json }) => json))),
      ...pathRows(`a stream of ${fewDeltas} deltas`, few),
      ...pathRows("a delta", ofDelta),
      ["a delta: promises, the median", quantile(promises, 0.5)],
    ],
  };
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
  const { rows, delta } = await runRows();
  const all = [...rows, ...(await stepRows()), ...houseRows()];
  const table = all.map(([name, figure]) => `| ${name} | ${figure} |`);
  process.stdout.write(["| in one process | |", "| --- | --- |", ...table, ""].join("\n"));
  if (!process.argv.includes("--list")) return;
  for (const [place, count] of [...delta].sort()) process.stdout.write(`${count} ${place}\n`);
}

if (process.argv.includes("--serve")) serve();
else await main();
