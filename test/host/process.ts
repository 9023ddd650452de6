import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished, TestRunner } from "vitest";
import { freePort } from "../support/free-port.ts";

/** The root of this clone. */
export const root = fileURLToPath(new URL("../..", import.meta.url));
const main = join(root, "services/host/main.ts");

/** A child process and what it has said. */
export interface TestProcess extends AsyncDisposable {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when it has ended and all that it said was read. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Resolves with the first match in its standard output; rejects where it ends without. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
}

/** A genmesh that serves. */
export interface RunningMesh extends TestProcess {
  /** Ends in /v1. */
  baseUrl: string;
  /** Without /v1. */
  origin: string;
  grpcAddress: string;
  opsAddress: string;
  /** The key of the banner; undefined where it shows none. */
  bannerKey: string | undefined;
}

/** Variables of a process; undefined: not set. */
export type Variables = Record<string, string | undefined>;

/** Starts a program; it is killed when the test is over. */
export function startProcess(
  file: string,
  args: readonly string[],
  { env = {}, cwd = root }: { env?: Variables; cwd?: string } = {},
): TestProcess {
  const child = spawn(file, args, { cwd, env: cleanEnv(env), stdio: ["ignore", "pipe", "pipe"] });
  return watched(child);
}

/**
 * Starts what `npm start` starts, or another `program` in its place, on a data directory of its own unless `env` names one,
 * and free ports.
 */
export async function startHost(
  env: Variables,
  args: readonly string[] = [],
  program = main,
): Promise<TestProcess> {
  return startProcess(process.execPath, [program, ...args], {
    env: { PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0", ...env },
  });
}

/** Starts it and waits until it serves. */
export async function startRunning(env: Variables, program = main): Promise<RunningMesh> {
  const grpcPort = env.GRPC_PORT ?? `${await freePort()}`;
  const opsPort = env.GENMESH_OPS_PORT ?? `${await freePort()}`;
  const ports = { GRPC_PORT: grpcPort, GENMESH_OPS_PORT: opsPort };
  const child = await startHost({ ...env, ...ports }, [], program);
  const [, baseUrl = "", bannerKey] = await child.says(
    /^genmesh is ready: (\S+)(?: {2}key: (\S+))?\n/,
  );
  return Object.assign(child, {
    baseUrl,
    origin: new URL(baseUrl).origin,
    grpcAddress: `127.0.0.1:${grpcPort}`,
    opsAddress: `127.0.0.1:${opsPort}`,
    bannerKey,
  });
}

/** Runs it to its end. */
export async function runHost(env: Variables, args: readonly string[] = []) {
  await using child = await startHost(env, args);
  const { code } = await child.ended;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

/** A folder that is removed with the test. */
export async function tempFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "genmesh-host-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

// Nothing of the shell that runs the tests shall reach the program.
function cleanEnv(env: Variables): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, ...env };
}

/** A test that runs out of time disposes of nothing; its processes end with it all the same. */
function endWithTest(child: ChildProcess): void {
  if (TestRunner.getCurrentTest() === undefined) return;
  onTestFinished(() => void child.kill("SIGKILL"));
}

function watched(child: ChildProcess): TestProcess {
  endWithTest(child);
  const said = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
      for (const listener of listeners) listener();
    });
  }
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal }));
  return {
    pid: child.pid ?? 0,
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    kill: (signal) => void child.kill(signal),
    ended,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(said.stdout);
          if (match) resolve(match);
        };
        listeners.add(look);
        look();
        ended.then(() => {
          look();
          reject(new Error(`it ended without saying so: ${said.stdout}${said.stderr}`));
        });
      }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
