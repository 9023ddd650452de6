import { stripVTControlCharacters } from "node:util";
import { runCheck } from "./check.ts";
import * as plan from "./plan.ts";
import { runCommand } from "./processes.ts";
import { report } from "./report.ts";
import { exportsOf, type Servers, startServers } from "./servers.ts";
import { type Result, runSuite } from "./suite.ts";

// Proves this checkout, whose packages are installed. Runs all of plan.ts, prints the failures, and ends with 1 where there are any.

const results: Result[] = [];
let hasServers = false;
const { env } = process;

/** Prints each line with the name of its part, so that it can be found. */
const sayFor = (name: string) => (line: string) =>
  process.stdout.write(`${name} | ${stripVTControlCharacters(line)}\n`);

/** Runs a part. Resolves to its second tries, for the time when nothing else runs. */
async function run(part: plan.Part): Promise<() => Promise<void>> {
  const start = performance.now();
  const { name } = part;
  process.stdout.write(`── ${name}\n`);
  const say = sayFor(name);
  const { result, tryAgain } =
    "script" in part ? await runSuite(part, say) : await runCheck(part, say);
  results.push(result);
  const { passed, skipped } = result;
  const seconds = Math.round((performance.now() - start) / 1000);
  process.stdout.write(`   ${name}: ${passed} passed, ${skipped} skipped, ${seconds} s\n`);
  return tryAgain;
}

/** Runs parts in lanes: one after the other in each, and the lanes side by side. Then runs the second tries alone. */
async function runLanes(...lanes: (readonly plan.Part[])[]): Promise<void> {
  const again: (() => Promise<void>)[] = [];
  const follow = async (lane: readonly plan.Part[]) => {
    for (const part of lane) {
      if (hasServers || !plan.needsServers(part)) again.push(await run(part));
    }
  };
  await Promise.all(lanes.map(follow));
  for (const tryAgain of again) await tryAgain();
}

/** A part whose preparation fails has failed, under its name. */
async function orRed<Thing>(part: string, having: Promise<Thing>): Promise<Thing | undefined> {
  try {
    return await having;
  } catch (error) {
    const red = [{ part, name: "failed", place: "", message: (error as Error).message }];
    results.push({ passed: 0, skipped: 0, red, secondTries: [] });
    return undefined;
  }
}

/** A PATH with both majors of Helm. */
async function findTools(script: string): Promise<Record<string, string>> {
  const lines: string[] = [];
  const say = (line: string) => lines.push(line);
  const { code, tail } = await runCommand([script, "tools"], { limitSeconds: 1_500, say });
  if (code !== 0) throw new Error(tail);
  const { PATH = "" } = exportsOf(lines.join("\n"));
  return { PATH: PATH.replace("$PATH", env.PATH ?? "") };
}

// Optional, and beside the clone. Tests on servers are left out where neither this nor the variables of servers are set.
const script = env.GENMESH_PROOF_SERVERS;
const named = env.GENMESH_TEST_MONGODB_URL !== undefined;
const tools = script ? orRed("helm", findTools(script)) : undefined;
const starting: Promise<Servers | undefined> | undefined =
  script && !named ? orRed("servers", startServers(script)) : undefined;
/** Also ends servers that are still starting. */
const endServers = async () => (await starting)?.end();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void endServers().finally(() => process.exit(1)));
}
try {
  await runLanes(...plan.looks.map((look) => [look]));
  await runLanes(plan.checks);
  const start = performance.now();
  await runLanes([plan.main]);
  const isSlow = performance.now() - start > plan.slowMainSeconds * 1_000;
  const servers = await starting;
  Object.assign(env, servers?.env);
  hasServers = named || servers !== undefined;
  if (hasServers) env.GENMESH_REQUIRE_BACKENDS = "1";
  else process.stdout.write("── not run: what needs real servers\n");
  Object.assign(env, await tools);
  const charts = tools ? [plan.charts] : [];
  // Suites on servers often wait, so two cores can run two of them at once.
  const lanes = [
    [plan.contracts, plan.crashes],
    [plan.endToEnd, plan.replicas, ...charts],
  ];
  await runLanes(...(isSlow ? [lanes.flat()] : lanes));
  for (const [variable, parts] of Object.entries(plan.asked)) {
    if (env[variable] === "1") await runLanes(parts);
    else {
      const names = parts.map(({ name }) => name).join(", ");
      process.stdout.write(`── not run: ${names} (${variable}=1)\n`);
    }
  }
} finally {
  await endServers();
}
process.stdout.write(`\n${report(results)}\n`);
process.exit(results.some(({ red }) => red.length > 0) ? 1 : 0);
