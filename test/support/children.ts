import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterEach } from "vitest";

/** Another process of a test, which writes lines. */
export interface Child {
  process: ChildProcess;
  /** The next line of its output. */
  next(): Promise<string>;
  /** All further lines of its output. */
  lines: AsyncIterable<string>;
  /** Lets it begin. */
  go(): void;
}

/** Runs scripts as processes of their own. Those that are left after a test are killed. */
export function children(): (script: string, ...args: string[]) => Child {
  const running: ChildProcess[] = [];
  afterEach(() => {
    for (const child of running.splice(0)) child.kill("SIGKILL");
  });
  return (script, ...args) => {
    const child = spawn(process.execPath, [script, ...args], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    running.push(child);
    const iterator = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      process: child,
      next: async () => String((await iterator.next()).value),
      lines: { [Symbol.asyncIterator]: () => iterator },
      go: () => child.stdin.write("go\n"),
    };
  };
}
