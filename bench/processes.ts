import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

/** A child process of the bench. */
export interface BenchProcess extends AsyncDisposable {
  pid: number;
  /** The first line of its output. Rejects where the process ends before. */
  firstLine: Promise<string>;
  /** Rejects at the end of the process, for any reason. */
  ended: Promise<never>;
}

/** Settings of a start. */
export interface ProgramOptions {
  args?: readonly string[];
  /** All of its environment except PATH. The caller's own variables must not change a measurement. */
  env?: Record<string, string | undefined>;
  core?: number;
  /** Its working directory. Default: the bench's. */
  folder?: string;
  nodeArgs?: readonly string[];
}

/** The core of the measured program, and that of the upstream and the load. */
export const [targetCore, loadCore] = [0, 1];

/** With two cores and `taskset` the measured program gets one, everything else the other. */
export const canPin =
  availableParallelism() > 1 && spawnSync("taskset", ["--version"]).status === 0;

const leaveWithParent = new URL("./leave-with-parent.js", import.meta.url).href;

/** Binds this process, with all of its threads and later children, to a core. */
export function pinSelf(core: number): void {
  if (canPin) spawnSync("taskset", ["-a", "-c", "-p", `${core}`, `${process.pid}`]);
}

/** Starts a program for Node, by its path from this folder. It ends by SIGTERM, or when the bench has ended. */
export function startProgram(file: string, options: ProgramOptions = {}): BenchProcess {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const nodeArgs = ["--import", leaveWithParent, ...(options.nodeArgs ?? [])];
  return startCommand([process.execPath, ...nodeArgs, path, ...(options.args ?? [])], options);
}

/** Starts another program. It ends by SIGTERM, or when the bench has ended. */
export function startBinary(file: string, options: ProgramOptions): BenchProcess {
  return startCommand(["setpriv", "--pdeathsig", "TERM", file, ...(options.args ?? [])], options);
}

function startCommand(command: string[], options: ProgramOptions): BenchProcess {
  const pinned = canPin && options.core !== undefined;
  const [program = "", ...args] = pinned
    ? ["taskset", "-c", `${options.core}`, ...command]
    : command;
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...options.env },
    ...(options.folder === undefined ? {} : { cwd: options.folder }),
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`${command.slice(-2).join(" ")} ended with ${signal ?? code}`);
  });
  const firstLine = Promise.race([firstLineOf(child.stdout), ended]);
  // A caller that starts several programs awaits them one after the other. A failure meanwhile must not end the bench.
  for (const promise of [firstLine, ended]) promise.catch(() => {});
  return { pid: child.pid ?? 0, firstLine, ended, [Symbol.asyncDispose]: () => end(child) };
}

/** Microseconds of CPU time that processes have used so far, in all of their threads. */
export function cpuMicrosOf(pids: readonly number[]): number {
  let nanos = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanos += nanosOf(`/proc/${pid}/task/${thread}/schedstat`);
    }
  }
  return nanos / 1_000;
}

/** Bytes of memory that a process has now. */
export function residentBytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

/** MiB of memory that processes have now, together. */
export function residentMibOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentBytesOf(pid), 0) / 2 ** 20;
}

/** A thread that ended between the listing and the look has no file. */
function nanosOf(file: string): number {
  try {
    return Number(readFileSync(file, "utf8").split(" ")[0]);
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return 0;
    throw error;
  }
}

async function firstLineOf(output: Readable): Promise<string> {
  const [line] = await once(createInterface(output), "line");
  return String(line);
}

/** Milliseconds for a program to end after its signal. */
const endTimeoutMs = 10_000;

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), endTimeoutMs);
  await ended;
  clearTimeout(force);
}
