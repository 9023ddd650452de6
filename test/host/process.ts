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

/** A child process and its output. */
export interface TestProcess extends AsyncDisposable {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves after the end, when all output was read. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Resolves with the first match in its standard output. Rejects where it ends without one. */
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
  /** The key in the banner. Undefined where the banner has none. */
  bannerKey: string | undefined;
}

/** Variables of a process. Undefined ones are not set. */
export type Variables = Record<string, string | undefined>;

/** Starts a program. It is killed at the end of the test. */
export function startProcess(
  file: string,
  args: readonly string[],
  { env = {}, cwd = root }: { env?: Variables; cwd?: string } = {},
): TestProcess {
  const child = spawn(file, args, { cwd, env: cleanEnv(env), stdio: ["ignore", "pipe", "pipe"] });
  return watched(child);
}

/** Starts the program of `npm start`, or another `program`, on free ports. It has a data directory of its own unless `env` names one. */
export async function startHost(
  env: Variables,
  args: readonly string[] = [],
  program = main,
): Promise<TestProcess> {
  return startProcess(process.execPath, [program, ...args], {
    env: { PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0", ...env },
  });
}

/** Starts a process and waits until it serves. */
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

/** Runs a process to its end. */
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

// Leaves out the variables of the shell that runs the tests.
function cleanEnv(env: Variables): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, ...env };
}

/** A test that runs out of time disposes of nothing. This ends its processes nevertheless. */
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
