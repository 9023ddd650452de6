import { existsSync } from "node:fs";
import { cpus } from "node:os";
import { build, dist } from "../deploy/build.ts";
import type { ServerUrls } from "../test/support/stores.ts";
import type { Round } from "./goals.ts";
import { type LineName, lines } from "./lines.ts";
import { type BenchOptions, readOptions, usage } from "./options.ts";
import { installPortkey } from "./portkey.ts";
import { canPin, loadCore, pinSelf } from "./processes.ts";
import { notes, report } from "./report.ts";
import { alternate } from "./rounds.ts";
import { startContestants } from "./starts.ts";
import { compileAll, restOf } from "./warm-up.ts";
import { startWorld, type WorldOptions } from "./world.ts";

/** Seconds of each in a line, at most, before anything is counted. */
const maxWarmUpSeconds = 0.5;

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    process.stdout.write(usage);
    return;
  }
  if (!existsSync("/proc/self/schedstat")) {
    throw new Error("CPU time is read from /proc: the bench wants Linux");
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => stop.abort(new Error("it was told to stop")));
  }
  pinSelf(loadCore);
  installPortkey();
  say("building …");
  await build(dist);
  await measure(options, wanted(options), stop.signal);
}

async function measure(
  options: BenchOptions,
  world: WorldOptions,
  signal: AbortSignal,
): Promise<void> {
  const { seconds, rounds, only } = options;
  const roundOptions = { rounds, seconds, signal };
  const results = new Map<LineName | "starts", readonly Round[]>();
  let firstStart: Round | undefined;
  await using stack = new AsyncDisposableStack();
  if (only.has("starts")) {
    say("starts …");
    const all = (await startContestants(stack)).filter(({ name }) => name !== "one" || world.one);
    const starts = await alternate(all, { ...roundOptions, warmUpSeconds: 0 });
    firstStart = starts.warmUp;
    results.set("starts", starts.rounds);
  }
  const chosen = Object.entries(lines).filter(([name]) => only.has(name as LineName));
  const rest = new Map<string, number>();
  if (chosen.length > 0) {
    const { targets, contestants } = await startWorld(world, stack);
    say("warming up …");
    await compileAll(targets, signal);
    for (const [name, share] of await restOf(targets)) rest.set(name, share);
    const warmUpSeconds = Math.min(seconds, maxWarmUpSeconds);
    for (const [name, line] of chosen) {
      say(`${name}, ${line.inFlight} in flight …`);
      try {
        const measured = await alternate(contestants(line), { ...roundOptions, warmUpSeconds });
        results.set(name as LineName, measured.rounds);
      } catch (error) {
        // What was measured before, and what can be after, is not lost with one line.
        signal.throwIfAborted();
        fail(`${name}: ${messageOf(error)}`);
      }
    }
  }
  const model = cpus()[0]?.model ?? "unknown CPU";
  const cores = canPin
    ? "each of them alone on one core, load and mock on another; stores wherever they run"
    : "cores not pinned";
  const how = `${rounds} rounds of ${seconds} s in turn: median, ± half of the range`;
  process.stdout.write(`\n${model}, Node ${process.versions.node}; ${cores}\n${how}\n\n`);
  process.stdout.write(`${report(results)}\n\n${notes(results, firstStart, rest)}\n`);
}

/** What of genmesh can be measured; says what the mesh lacks. */
function wanted({ forms, profileFolder }: BenchOptions): WorldOptions {
  const one = forms.has("one");
  if (!forms.has("mesh")) return { one, mesh: undefined, profileFolder };
  const urls = Object.entries(storeVariables).map(([name, variable]) => [
    name,
    process.env[variable] ?? "",
  ]);
  const missing = Object.values(storeVariables).filter((variable) => !process.env[variable]);
  if (missing.length > 0) say(`the mesh is left out: ${missing.join(", ")} not set`);
  const mesh = missing.length > 0 ? undefined : (Object.fromEntries(urls) as ServerUrls);
  return { one, mesh, profileFolder };
}

const storeVariables: Readonly<Record<keyof ServerUrls, string>> = {
  mongodb: "GENMESH_TEST_MONGODB_URL",
  nats: "GENMESH_TEST_NATS_URL",
  s3: "GENMESH_TEST_S3_URL",
};

function fail(why: string): void {
  say(`bench: ${why}`);
  process.exitCode = 1;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

try {
  await main();
} catch (error) {
  fail(messageOf(error));
}
