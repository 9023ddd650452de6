import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsVariable, type RunEvent } from "./events.ts";
import { type Command, runCommand } from "./processes.ts";

/** Tests that are run and judged together. */
export interface Suite {
  name: string;
  /** Of package.json; it runs vitest. */
  script: string;
  /** Of vitest, those of the script. */
  projects: readonly string[];
  /** Files, where they are fewer than those of the script. */
  args?: readonly string[];
  /** Beside those of this process; what the script sets is repeated here for second tries. */
  env?: Record<string, string>;
  /** Longer, and it is stopped and red. */
  limitSeconds: number;
  /** There is nothing to run without real servers. */
  needsServers?: true;
}

/** What is red, or passed at its second try. */
export interface Finding {
  /** The suite or check. */
  part: string;
  /** Of the test, with the groups that it is in. */
  name: string;
  /** file:line. */
  place: string;
  message: string;
}

export interface Result {
  passed: number;
  skipped: number;
  red: Finding[];
  /** Each with what failed at its first try. */
  secondTries: Finding[];
}

/** Files whose tests have one try: what is wrong once about money, jobs, stores and replicas is wrong, however seldom it is seen. */
const oneTry = /^services\/billing\/|^test\/(contract|faults|mesh)\//;
/** An attack is one on money where its file reads what was charged: names of files do not tell. */
const readsCharge = /\b(spent|charged|costOf)\(|\bmonthSpend\b/;

function hasOneTry(file: string): boolean {
  if (oneTry.test(file)) return true;
  return file.startsWith("test/attacks/") && readsCharge.test(readFileSync(file, "utf8"));
}

/** More failures in one suite are no race: second tries would only take time. */
const maxSecondTries = 20;

/** A suite's result, and what it leaves to be tried once more, when nothing else runs. */
export interface FirstRun {
  result: Result;
  /** Runs each test that failed and may have a second try, and completes the result. */
  tryAgain(): Promise<void>;
}

export async function runSuite(suite: Suite, say: (line: string) => void): Promise<FirstRun> {
  const { script, projects, args = [] } = suite;
  const { passed, skipped, red } = await runOnce(suite, ["npm", "run", script, "--", ...args], say);
  const result: Result = { passed, skipped, red: [], secondTries: [] };
  const mayTry = red.length <= maxSecondTries && red.every(({ file }) => file !== undefined);
  const byFile = mayTry ? Map.groupBy(red, ({ file }) => file ?? "") : new Map<string, Red[]>();
  if (!mayTry) result.red.push(...red);
  for (const [file, findings] of byFile) {
    if (!hasOneTry(file)) continue;
    result.red.push(...findings);
    byFile.delete(file);
  }
  const tryAgain = async () => {
    for (const [file, findings] of byFile) {
      say(`second try: ${file}`);
      // A file that could not be loaded, or a hook of which failed, is run whole; else the tests that failed.
      const isWhole = findings.some(({ isBroken }) => isBroken);
      const pattern = isWhole ? [] : ["-t", patternOf(findings.map(({ name }) => name))];
      const where = projects.flatMap((project) => ["--project", project]);
      const alone = ["run", ...where, "--maxWorkers", "1", ...pattern, file];
      const again = await runOnce(suite, ["node_modules/.bin/vitest", ...alone], say);
      // All of them must have run and passed: a name that the pattern does not find is no pass.
      const least = isWhole ? 1 : findings.length;
      if (again.passed >= least && again.red.length === 0) {
        result.passed += again.passed;
        result.secondTries.push(...findings);
      } else result.red.push(...(again.red.length > 0 ? again.red : findings));
    }
  };
  return { result, tryAgain };
}

/** A finding of one run. */
export interface Red extends Finding {
  /** Undefined: no test, and nothing that could be tried again. */
  file?: string;
  /** Something outside of the tests failed. */
  isBroken?: boolean;
}

/** Matches these full names: vitest joins groups by a space where it looks for a pattern, and by " > " where it reports. */
function patternOf(names: readonly string[]): string {
  const parts = names.map((name) => name.split(" > ").map(RegExp.escape).join("( > | )"));
  return `^(${parts.join("|")})$`;
}

/** Runs a command that runs vitest, and reads what became of each test. */
export async function runOnce(
  { name: part, env, limitSeconds }: Suite,
  command: Command,
  say: (line: string) => void,
): Promise<{ passed: number; skipped: number; red: Red[] }> {
  const folder = mkdtempSync(join(tmpdir(), "genmesh-suite-"));
  try {
    const file = join(folder, "events");
    const ran = { limitSeconds, env: { ...env, [eventsVariable]: file }, say };
    const { code, tail } = await runCommand(command, ran);
    const events = readEvents(file);
    const red = events.flatMap((event) => redOf(event, part));
    const ofAll = (name: string, message: string) => red.push({ part, name, place: "", message });
    if (code === undefined) {
      ofAll(`stopped after ${limitSeconds} s`, `under way:\n${underWay(events).join("\n")}`);
    } else if (red.length === 0 && (code !== 0 || events.at(-1)?.type !== "finished")) {
      ofAll(`ended with ${code}`, tail);
    }
    const count = (state: string) =>
      events.filter((event) => event.type === "ended" && event.state === state).length;
    return { passed: count("passed"), skipped: count("skipped"), red };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readEvents(file: string): RunEvent[] {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as RunEvent);
  } catch (error) {
    // The run ended before it began.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function redOf(event: RunEvent, part: string): Red[] {
  if (event.type === "begun" || event.type === "finished") return [];
  if (event.type === "ended" && event.state !== "failed") return [];
  const message = event.errors.join("\n");
  if (event.type === "unhandled") {
    return [{ part, name: "an error that no test handled", place: "", message }];
  }
  if (event.type === "ended") {
    return [{ part, name: event.name, place: event.place, message, file: event.file }];
  }
  const name = event.name === "" ? "outside of its tests" : event.name;
  return [{ part, name, place: event.file, message, file: event.file, isBroken: true }];
}

/** Tests that had begun and not ended. */
function underWay(events: readonly RunEvent[]): string[] {
  const open = new Set<string>();
  for (const event of events) {
    if (event.type === "begun") open.add(`${event.file} > ${event.name}`);
    else if (event.type === "ended") open.delete(`${event.file} > ${event.name}`);
  }
  return open.size === 0 ? ["no test"] : [...open];
}
