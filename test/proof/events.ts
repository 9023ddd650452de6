import { appendFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vite } from "vitest/node";

/** The variable that names the file for events of a run of vitest, a JSON object a line. */
export const eventsVariable = "GENMESH_PROOF_EVENTS";

/** An event in a run of vitest. Files are named from the root of the repository. */
export type RunEvent =
  /** Written by the test's own process in begun.setup.ts. */
  | { type: "begun"; file: string; name: string }
  | {
      type: "ended";
      file: string;
      name: string;
      state: "passed" | "failed" | "skipped";
      ms: number;
      /** file:line of the test. */
      place: string;
      /** The messages, the first failure first. Empty where nothing failed. */
      errors: string[];
    }
  /** A file, or a group of its tests, failed outside of any test. It could not be loaded, or a hook threw. */
  | { type: "broken"; file: string; name: string; errors: string[] }
  /** Errors that belong to no test. */
  | { type: "unhandled"; errors: string[] }
  | { type: "finished" };

/** Writes events where the variable names a file, in addition to the reporters of the command line. */
export function writeEvents(): Vite.Plugin {
  return {
    name: "write-events",
    configureVitest({ vitest }) {
      const file = process.env[eventsVariable];
      const { reporters } = vitest.config;
      if (file && !reporters.some((one) => one instanceof EventWriter)) {
        reporters.push(new EventWriter(file));
      }
    },
  };
}

class EventWriter implements Reporter {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    if (state === "pending") return;
    const file = test.module.relativeModuleId;
    const line = test.location?.line;
    this.#write({
      type: "ended",
      file,
      name: test.fullName,
      state,
      ms: test.diagnostic()?.duration ?? 0,
      place: line === undefined ? file : `${file}:${line}`,
      errors: errors.map(textOf),
    });
  }

  onTestSuiteResult(suite: TestSuite): void {
    const errors = suite.errors();
    if (errors.length === 0) return;
    const file = suite.module.relativeModuleId;
    this.#write({ type: "broken", file, name: suite.fullName, errors: errors.map(textOf) });
  }

  onTestModuleEnd(module: TestModule): void {
    const errors = module.errors();
    if (errors.length === 0) return;
    const file = module.relativeModuleId;
    this.#write({ type: "broken", file, name: "", errors: errors.map(textOf) });
  }

  onTestRunEnd(_: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>): void {
    if (unhandled.length > 0) this.#write({ type: "unhandled", errors: unhandled.map(textOf) });
    this.#write({ type: "finished" });
  }

  // At once and in order, so that a killed run leaves all events before.
  #write(event: RunEvent): void {
    appendFileSync(this.#file, `${JSON.stringify(event)}\n`);
  }
}

/** An error with its difference and its place in the test. */
function textOf({
  name,
  message,
  diff,
  stacks,
}: SerializedError & { diff?: string; stacks?: { file: string; line: number }[] }): string {
  const [top] = stacks ?? [];
  const at = top ? `\n at ${top.file}:${top.line}` : "";
  return `${name ?? "Error"}: ${message}${at}${diff ? `\n${diff}` : ""}`;
}
