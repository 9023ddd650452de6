import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsVariable, type RunEvent } from "./events.ts";
import { type Command, runCommand } from "./processes.ts";

/** Tests that run and are judged together. */
export interface Suite {
  name: string;
  /** The name in package.json. The script runs vitest. */
  script: string;
  /** The script's projects of vitest. */
  projects: readonly string[];
  /** Files, where they are fewer than the script's. */
  args?: readonly string[];
  /** Variables in addition to those of this process. The script's own are repeated here for second tries. */
  env?: Record<string, string>;
  /** After this time it is stopped and has failed. */
  limitSeconds: number;
  /** Nothing of it can run without real servers. */
  needsServers?: true;
}

/** A failure, or a success at the second try. */
export interface Finding {
  /** The suite or check. */
  part: string;
  /** The test's name with its groups. */
  name: string;
  /** file:line. */
  place: string;
  message: string;
}

export interface Result {
  passed: number;
  skipped: number;
  red: Finding[];
  /** Each with the error of its first try. */
  secondTries: Finding[];
}

/** Files whose tests have one try. A fault about money, jobs, stores and replicas is a fault, however seldom it is seen. */
const oneTry = /^services\/billing\/|^test\/(contract|faults|mesh)\//;
/** An attack concerns money where its file reads charges. Names of files do not show that. */
const readsCharge = /\b(spent|charged|costOf)\(|\bmonthSpend\b/;

function hasOneTry(file: string): boolean {
  if (oneTry.test(file)) return true;
  return file.startsWith("test/attacks/") && readsCharge.test(readFileSync(file, "utf8"));
}

/** More failures in one suite are no race, and second tries would only take time. */
const maxSecondTries = 20;

/** A suite's result, and its second tries, for the time when nothing else runs. */
export interface FirstRun {
  result: Result;
  /** Runs each failed test that may have a second try, and completes the result. */
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
      // A file that could not be loaded, or whose hook failed, is run as a whole. Otherwise only the failed tests are.
      const isWhole = findings.some(({ isBroken }) => isBroken);
      const pattern = isWhole ? [] : ["-t", patternOf(findings.map(({ name }) => name))];
      const where = projects.flatMap((project) => ["--project", project]);
      const alone = ["run", ...where, "--maxWorkers", "1", ...pattern, file];
      const again = await runOnce(suite, ["node_modules/.bin/vitest", ...alone], say);
      // All of them must have run and passed. A name that the pattern does not find is no pass.
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
  /** Undefined where it is no test and cannot be tried again. */
  file?: string;
  /** Something outside of the tests failed. */
  isBroken?: boolean;
}

/** Matches these full names. For a pattern vitest joins groups by a space, and in reports by " > ". */
function patternOf(names: readonly string[]): string {
  const parts = names.map((name) => name.split(" > ").map(RegExp.escape).join("( > | )"));
  return `^(${parts.join("|")})$`;
}

/** Runs a command with vitest, and reads the result of each test. */
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
    // The run ended before its first event.
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

/** Tests that have begun and not ended. */
function underWay(events: readonly RunEvent[]): string[] {
  const open = new Set<string>();
  for (const event of events) {
    if (event.type === "begun") open.add(`${event.file} > ${event.name}`);
    else if (event.type === "ended") open.delete(`${event.file} > ${event.name}`);
  }
  return open.size === 0 ? ["no test"] : [...open];
}
