import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { portsFrom } from "../../services/host/run-mesh/ports.ts";

/**
 * Where this process of a test run looks for ports first: its own thousand, from a place that differs between runs. They are below
 * those that a system gives outgoing connections, of which one would now and then take a port between its choice and its use.
 */
const firstOwnPort =
  20_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 7) * 1_000 + (process.pid % 500);

const next = portsFrom("127.0.0.1", firstOwnPort);

/** A file for each port that a test was given, with the process that has it: two runs on one machine never get the same. */
const givenPorts = join(tmpdir(), "genmesh-test-ports");
mkdirSync(givenPorts, { recursive: true });

/** Gives ports of the loopback that no program listens on, each once. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = await next();
    if (take(port)) return port;
  }
}

function take(port: number): boolean {
  const file = join(givenPorts, `${port}`);
  for (;;) {
    try {
      writeFileSync(file, `${process.pid}`, { flag: "wx" });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (isAlive(ownerOf(file))) return false;
    rmSync(file, { force: true });
  }
}

/** Undefined: it is being written, or was just removed. */
function ownerOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8")) || undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return true;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
