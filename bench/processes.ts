import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A child process of the bench. */
export interface BenchProcess extends AsyncDisposable {
  /** The first line that it printed. */
  firstLine: string;
}

/** Two cores and `taskset`: genmesh gets one, everything else the other. */
export const canPin =
  availableParallelism() > 1 && spawnSync("taskset", ["--version"]).status === 0;

/** Binds this process, with all of its threads and later children, to a core. */
export function pinSelf(core: number): void {
  if (canPin) spawnSync("taskset", ["-a", "-c", "-p", `${core}`, `${process.pid}`]);
}

/** Starts a program of this repository and waits for its first line; SIGTERM ends it. */
export async function startProgram(
  file: string,
  options: { env?: Record<string, string>; core?: number; nodeArgs?: readonly string[] } = {},
): Promise<BenchProcess> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const command = [process.execPath, ...(options.nodeArgs ?? []), path];
  if (canPin && options.core !== undefined) command.unshift("taskset", "-c", `${options.core}`);
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "ignore"],
  });
  return { firstLine: await firstLineOf(child), [Symbol.asyncDispose]: () => end(child) };
}

async function firstLineOf(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("a child without output");
  const lines = createInterface(child.stdout);
  const line = once(lines, "line").then(([text]) => String(text));
  const exit = once(child, "exit").then(([code]) => {
    throw new Error(`a program of the bench ended with code ${code} before it was ready`);
  });
  const first = await Promise.race([line, exit]);
  exit.catch(() => {});
  return first;
}

/** Milliseconds that a program has to end in, once it is told to. */
const endTimeoutMs = 10_000;

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.stdin?.end();
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), endTimeoutMs);
  await ended;
  clearTimeout(force);
}
