import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import * as plan from "./plan.ts";
import { runOnce, type Suite } from "./suite.ts";

// `npm run test:races [-- --rounds N] [SUITE…]`: finds tests whose result depends on time or order. Each suite runs N times beside three
// busy processes and N times in random order of its files, without second tries. It prints the failures, their number and their messages,
// and ends with 1 where there are any. Suites on servers run where GENMESH_TEST_MONGODB_URL is set.

/** Enough to keep two cores busy, and one more. */
const busyProcesses = 3;
/** The factor for time limits on a busy machine. */
const patience = 3;

const { values, positionals } = parseArgs({
  options: { rounds: { type: "string", default: "5" } },
  allowPositionals: true,
});
const rounds = Number(values.rounds);
const hasServers = process.env.GENMESH_TEST_MONGODB_URL !== undefined;
const suites: Suite[] = [
  ...[plan.main, plan.contracts, plan.endToEnd, plan.replicas, plan.crashes],
  ...plan.asked.GENMESH_CI_ALL,
].filter((part) => hasServers || !plan.needsServers(part));
const chosen =
  positionals.length === 0 ? suites : suites.filter(({ script }) => positionals.includes(script));
if (!(rounds >= 1) || chosen.length === 0) {
  const names = suites.map(({ script }) => script).join(", ");
  process.stderr.write(`--rounds is a number, and a suite is one of: ${names}\n`);
  process.exit(2);
}

/** By the test's name: the rounds in which it failed, and the message of its first failure. */
const races = new Map<string, { rounds: string[]; message: string }>();

/** Starts processes that keep the machine busy. Disposing ends them. */
function busy(): Disposable {
  const spinning = Array.from({ length: busyProcesses }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
  return {
    [Symbol.dispose]() {
      for (const one of spinning) one.kill();
    },
  };
}

async function round(suite: Suite, name: string, args: readonly string[]): Promise<void> {
  const start = performance.now();
  const command = ["npm", "run", "--silent", suite.script, "--", ...args] as const;
  const limitSeconds = patience * suite.limitSeconds;
  const { passed, red } = await runOnce({ ...suite, limitSeconds }, command, () => {});
  const seconds = Math.round((performance.now() - start) / 1000);
  process.stdout.write(
    `${suite.script}, ${name}: ${passed} passed, ${red.length} failed, ${seconds} s\n`,
  );
  for (const { place, name: test, message } of red) {
    const key = `${suite.script}: ${place} > ${test}`;
    process.stdout.write(`  ${place} > ${test}: ${message.split("\n", 1)[0]}\n`);
    const race = races.get(key) ?? { rounds: [], message };
    race.rounds.push(name);
    races.set(key, race);
  }
}

for (const suite of chosen) {
  for (let n = 1; n <= rounds; n++) {
    {
      using _ = busy();
      await round(suite, `busy ${n}`, []);
    }
    await round(suite, `shuffled ${n}`, ["--sequence.shuffle.files", `--sequence.seed=${n}`]);
  }
}
for (const [name, race] of races) {
  const [first = ""] = race.message.split("\n");
  process.stdout.write(`!! ${name}\n     ${race.rounds.join(", ")}: ${first}\n`);
}
process.stdout.write(`${races.size} tests lost a race\n`);
process.exit(races.size === 0 ? 0 : 1);
