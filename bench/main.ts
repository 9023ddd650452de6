import { existsSync } from "node:fs";
import { cpus } from "node:os";
import { build, dist } from "../deploy/build.ts";
import type { ServerUrls } from "../test/support/stores.ts";
import type { FloorLayer } from "./floor.ts";
import type { Round } from "./goals.ts";
import { goModelVariable } from "./gomodel.ts";
import { grow, growMongo, growthReport, growthSizes } from "./growth.ts";
import { growPages, pagesReport } from "./growth-pages.ts";
import { type LineName, lines } from "./lines.ts";
import { liteLlmVariable } from "./litellm.ts";
import { weigh } from "./memory.ts";
import { type BenchOptions, type Measured, readOptions, usage } from "./options.ts";
import { installPortkey } from "./portkey.ts";
import { canPin, loadCore, pinSelf, residentMibOf } from "./processes.ts";
import { memoryReport, notes, report } from "./report.ts";
import { alternate } from "./rounds.ts";
import { startContestants } from "./starts.ts";
import type { TargetName } from "./target.ts";
import { compileAll, restOf } from "./warm-up.ts";
import { startWorld, type WorldOptions } from "./world.ts";

/** Most seconds of each target in a line that are not counted. */
const maxWarmUpSeconds = 0.5;
/** Measured without other products. */
const alone: ReadonlySet<Measured> = new Set(["memory", "growth", "pages"]);

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
  const isPortkeyIn = [...options.only].some((name) => !alone.has(name));
  if (isPortkeyIn) installPortkey();
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
  if (only.has("memory") && world.one) {
    say("memory …");
    process.stdout.write(`${memoryReport(await weigh(signal))}\n`);
  }
  if (only.has("growth")) {
    const size = growthSizes[options.growth];
    const { profileFolder } = options;
    if (world.one) {
      say(`growth in SQLite, ${options.growth} …`);
      process.stdout.write(`${growthReport(await grow(size, { profileFolder, signal }), size)}\n`);
    }
    if (world.mesh) {
      say(`growth at MongoDB, ${options.growth} …`);
      process.stdout.write(`${growthReport(await growMongo(size, world.mesh, signal), size)}\n`);
    }
  }
  if (only.has("pages")) {
    const entries = options.entries ?? growthSizes[options.growth].pageEntries;
    const stores = [...(world.one ? [undefined] : []), ...(world.mesh ? [world.mesh] : [])];
    for (const servers of stores) {
      say(`pages of ${entries} entries ${servers ? "at MongoDB" : "in SQLite"} …`);
      process.stdout.write(`${pagesReport(await growPages(entries, { servers, signal }))}\n`);
    }
  }
  const chosen = Object.entries(lines).filter(([name]) => only.has(name as LineName));
  const rest = new Map<string, number>();
  const resident = new Map<string, number>();
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
        // A failed line does not lose the results of the others.
        signal.throwIfAborted();
        fail(`${name}: ${messageOf(error)}`);
      }
    }
    for (const { name, pids } of targets) resident.set(name, residentMibOf(pids));
  }
  if (results.size === 0) return;
  const model = cpus()[0]?.model ?? "unknown CPU";
  const cores = canPin
    ? "each of them alone on one core, load and mock on another; stores wherever they run"
    : "cores not pinned";
  const how = `${rounds} rounds of ${seconds} s in turn: median, ± half of the range`;
  process.stdout.write(`\n${model}, Node ${process.versions.node}; ${cores}\n${how}\n\n`);
  process.stdout.write(`${report(results)}\n\n${notes(results, firstStart, rest, resident)}\n`);
}

/** The forms of genmesh that can be measured. Prints the reason where the mesh cannot. */
function wanted({ forms, only, profileFolder }: BenchOptions): WorldOptions {
  const common = {
    one: forms.has("one"),
    floors: floorsOf(
      [...only].flatMap((name) =>
        Object.hasOwn(lines, name) ? lines[name as LineName].targets : [],
      ),
    ),
    goModel: process.env[goModelVariable],
    liteLlm: process.env[liteLlmVariable],
    profileFolder,
  };
  if (common.goModel === undefined) say(`GoModel is left out: ${goModelVariable} not set`);
  if (common.liteLlm === undefined) say(`LiteLLM is left out: ${liteLlmVariable} not set`);
  if (!forms.has("mesh")) return { ...common, mesh: undefined };
  const urls = Object.entries(storeVariables).map(([name, variable]) => [
    name,
    process.env[variable] ?? "",
  ]);
  const missing = Object.values(storeVariables).filter((variable) => !process.env[variable]);
  if (missing.length > 0) say(`the mesh is left out: ${missing.join(", ")} not set`);
  const mesh = missing.length > 0 ? undefined : (Object.fromEntries(urls) as ServerUrls);
  return { ...common, mesh };
}

function floorsOf(names: readonly TargetName[]): ReadonlySet<FloorLayer> {
  return new Set(
    names
      .filter((name): name is `floor-${FloorLayer}` => name.startsWith("floor-"))
      .map((name) => name.slice("floor-".length) as FloorLayer),
  );
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
