// The program behind `npm run mesh`: starts a mesh on this machine and stops it on a signal. `run.ts` does the work.

import { enableCompileCache } from "node:module";
import { envToConfig, hasColours, readEnv } from "../config.ts";
import { consoleLine } from "../console-address.ts";
import { ConfigError, type EnvReader, envReader } from "../env.ts";
import { readMeshArguments } from "./options.ts";
import { startLocalMesh } from "./run.ts";

/** Milliseconds after a process's own drain until it is killed. */
const killAfterMs = 5_000;
/** Milliseconds. Any long time will do. */
const aliveTickMs = 60 * 60_000;

/** `npm run mesh [-- --replicas N|ROLE=N …]`: every role as processes of this machine, until SIGTERM or Ctrl-C. */
async function main(): Promise<void> {
  // The files that this process writes hold prompts or secrets.
  process.umask(0o077);
  enableCompileCache();
  const stop = new AbortController();
  const hurry = new AbortController();
  const onSignal = () => {
    // A Ctrl-C reaches the processes themselves too, and npm passes it on once more.
    stop.abort(new Error("it was told to stop"));
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  const alive = setInterval(() => {}, aliveTickMs);
  try {
    const env = readEnv();
    const log = (line: string) => void process.stderr.write(`${line}\n`);
    const words = readMeshArguments(process.argv.slice(2));
    const shown = await terminal(envReader(env));
    const mesh = await startLocalMesh({ ...words, env, log, shown, signal: stop.signal });
    const { apiKey } = mesh.bootstrap;
    const urls = mesh.baseUrls.join(" ");
    const ready = `genmesh is ready: ${urls}${apiKey ? `  key: ${apiKey}` : ""}`;
    const config = envToConfig({ ...env, GENMESH_ROLE: "all" });
    const lines = [ready, ...consoleLine(config, mesh.baseUrls[0] ?? "")];
    process.stdout.write(`${lines.join("\n")}\n`);
    mesh.bootstrap.shown();
    await new Promise<void>((resolve) => {
      if (stop.signal.aborted) resolve();
      stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const late = setTimeout(() => hurry.abort(), config.drainMs + killAfterMs);
    await mesh.stop(hurry.signal);
    clearTimeout(late);
  } catch (error) {
    if (!stop.signal.aborted) fail(error);
  } finally {
    clearInterval(alive);
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  }
}

/** Lines are made short for a person who reads them in a terminal. */
async function terminal(read: EnvReader) {
  if (!process.stderr.isTTY) return undefined;
  const { terminalLines } = await import("#kit/base/log-terminal.ts");
  return terminalLines({ colours: hasColours(read) });
}

function fail(error: unknown): void {
  const isPlain = error instanceof ConfigError || isArgumentError(error);
  const text = isPlain
    ? (error as Error).message.split("\n")[0]
    : error instanceof Error
      ? error.stack
      : String(error);
  process.stderr.write(`genmesh: ${text}\n`);
  process.exitCode = 1;
}

function isArgumentError(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")
  );
}

await main();
