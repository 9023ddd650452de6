// Runs one process of a mesh on this machine, and starts it again when it ends by itself.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { PlannedProcess } from "./plan.ts";

/** A process of the mesh. It is started again when it ends by itself. */
export interface MeshChild {
  readonly planned: PlannedProcess;
  /** Resolves with its URL when it first reports itself ready. Rejects where it ends before. */
  readonly ready: Promise<string>;
  /** Sends SIGTERM, and SIGKILL when `signal` aborts. Resolves when the process is gone. */
  stop(signal: AbortSignal): Promise<void>;
}

/** Options for starting a child. */
export interface ChildOptions {
  /** Called with each line of its output, and with events of the child. */
  log(name: string, line: string): void;
  /** Options of the runtime, before the program. Tests change its clock this way. */
  nodeArgs?: readonly string[] | undefined;
  /** Waits before the process is started again. */
  sleep(ms: number): Promise<void>;
}

/** Milliseconds before a process that ended by itself is started again. */
const restartMs = 1_000;
const main = fileURLToPath(new URL("../main.ts", import.meta.url));

/** Starts a process, and starts it again until it is stopped. */
export function startChild(
  planned: PlannedProcess,
  { log, nodeArgs = [], sleep }: ChildOptions,
): MeshChild {
  const firstReady = Promise.withResolvers<string>();
  // Code that starts several children waits for one after the other. A failure in the meantime must not count as unhandled.
  firstReady.promise.catch(() => {});
  let isStopped = false;
  let wasReady = false;
  let child: ChildProcess | undefined;
  /** The child's output with the reason why it cannot start. */
  let why = "";

  const runOnce = async () => {
    child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...nodeArgs, main], {
      env: planned.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { stdout, stderr } = child;
    const ended = once(child, "close");
    eachLine(stderr, (line) => {
      if (line.startsWith("genmesh: ")) why = line.slice("genmesh".length);
      log(planned.name, line);
    });
    eachLine(stdout, (line) => {
      const url = / is ready: (\S+)/.exec(line)?.[1];
      if (url === undefined) return;
      wasReady = true;
      log(planned.name, line);
      firstReady.resolve(url);
    });
    const [code, signal] = await ended;
    if (!isStopped) log(planned.name, `ended with ${signal ?? code}`);
  };
  const live = async () => {
    while (!isStopped) {
      await runOnce();
      if (!wasReady) {
        firstReady.reject(new Error(`${planned.name} ended before it was ready${why}`));
        return;
      }
      if (!isStopped) await sleep(restartMs);
    }
  };
  const living = live().catch((error) => firstReady.reject(error));
  return {
    planned,
    ready: firstReady.promise,
    async stop(signal) {
      isStopped = true;
      child?.kill("SIGTERM");
      const kill = () => child?.kill("SIGKILL");
      if (signal.aborted) kill();
      signal.addEventListener("abort", kill, { once: true });
      await living;
      signal.removeEventListener("abort", kill);
    },
  };
}

function eachLine(stream: Readable | null, take: (line: string) => void): void {
  if (stream) createInterface({ input: stream }).on("line", take);
}
