import { stripVTControlCharacters } from "node:util";
import { runCheck } from "./check.ts";
import * as plan from "./plan.ts";
import { runCommand } from "./processes.ts";
import { report } from "./report.ts";
import { exportsOf, type Servers, startServers } from "./servers.ts";
import { type Result, runSuite } from "./suite.ts";

// Proves this checkout, whose packages are installed: runs all of plan.ts, prints what is red, and ends with 1 where anything is.

const results: Result[] = [];
const { env } = process;

/** Prints each line with its part's name, because parts run side by side. */
const sayFor = (name: string) => (line: string) =>
  process.stdout.write(`${name} | ${stripVTControlCharacters(line)}\n`);

async function run(part: plan.Part): Promise<void> {
  const start = performance.now();
  const { name } = part;
  process.stdout.write(`── ${name}\n`);
  const say = sayFor(name);
  const result = await ("project" in part ? runSuite(part, say) : runCheck(part, say));
  results.push(result);
  const { passed, skipped, red, secondTries } = result;
  const seconds = Math.round((performance.now() - start) / 1000);
  const counts = `${passed} passed, ${red.length} red, ${skipped} skipped, ${secondTries.length} tried again`;
  process.stdout.write(`   ${name}: ${counts}, ${seconds} s\n`);
}

async function runAll(parts: readonly plan.Part[]): Promise<void> {
  for (const part of parts) await run(part);
}

/** What cannot be had is red by its name. */
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

// Beside the clone, and optional: without it, and without variables that name servers, what needs servers is not run.
const script = env.GENMESH_PROOF_SERVERS;
const named = env.GENMESH_TEST_MONGODB_URL !== undefined;
const tools = script ? orRed("helm", findTools(script)) : undefined;
const starting: Promise<Servers | undefined> | undefined =
  script && !named ? orRed("servers", startServers(script)) : undefined;
let servers: Servers | undefined;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(
    signal,
    () => void (servers?.end() ?? Promise.resolve()).then(() => process.exit(1)),
  );
}
try {
  await runAll(plan.checks);
  await run(plan.main);
  await runAll(plan.withoutServers);
  servers = await starting;
  Object.assign(env, servers?.env);
  if (named || servers) {
    env.GENMESH_REQUIRE_BACKENDS = "1";
    await runAll(plan.onServers);
  } else process.stdout.write("── not run: what needs real servers\n");
  await run(plan.crashes);
  Object.assign(env, await tools);
  await run(plan.charts);
  if (env.GENMESH_CI_CLUSTER === "1") await run(plan.cluster);
  else process.stdout.write("── not run: charts on a cluster (GENMESH_CI_CLUSTER=1)\n");
} finally {
  await servers?.end();
}
process.stdout.write(`\n${report(results)}\n`);
process.exit(results.some(({ red }) => red.length > 0) ? 1 : 0);
