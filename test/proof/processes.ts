import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

/** The variable that marks the processes of one command and their children. */
export const runVariable = "GENMESH_PROOF_RUN";

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

export interface Ended {
  /** Undefined where it was stopped after its time limit. */
  code: number | undefined;
  /** The last 40 lines of its output. */
  tail: string;
}

/** Runs a command. When this resolves, the command and all its children have ended. */
export async function runCommand(
  [program, ...args]: Command,
  options: {
    limitSeconds: number;
    env?: Record<string, string>;
    /** Gets each line of its output. */
    say(line: string): void;
  },
): Promise<Ended> {
  const tag = `${process.pid}-${Math.random().toString(36).slice(2)}`;
  const child = spawn(program, args, {
    env: { ...process.env, ...options.env, [runVariable]: tag },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const tail: string[] = [];
  const reading = [child.stdout, child.stderr].map(async (stream) => {
    for await (const line of createInterface({ input: stream })) {
      options.say(line);
      tail.push(line);
      if (tail.length > tailLines) tail.shift();
    }
  });
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    void endTagged(tag, child.pid);
  }, options.limitSeconds * 1000);
  const code = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (exitCode) => resolve(exitCode ?? 1));
  });
  clearTimeout(limit);
  // A child that still runs would disturb the next command, and keep the output open.
  await endTagged(tag, child.pid);
  await Promise.all(reading);
  return { code: isLate ? undefined : code, tail: tail.join("\n") };
}

const tailLines = 40;

/** Ends a group of processes, and all with the tag. Resolves when none is left. */
export async function endTagged(tag: string, group?: number): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (let look = 0; look < looksPerSignal; look += 1) {
      const pids = tagged(tag);
      const isGroupAlive = group !== undefined && kill(-group, look === 0 ? signal : 0);
      if (pids.length === 0 && !isGroupAlive) return;
      if (look === 0) for (const pid of pids) kill(pid, signal);
      await sleep(pauseMs);
    }
  }
}

/** 5 s in all for each signal. */
const [looksPerSignal, pauseMs] = [50, 100];

/** Processes with the tag in their environment. */
function tagged(tag: string): number[] {
  const mark = `${runVariable}=${tag}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => environmentOf(name).includes(mark))
    .map(Number);
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    // It has ended, or it is another user's.
    return [];
  }
}

/** False where there is no such process. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
