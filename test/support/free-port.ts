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
export const freePort = () => freePorts(1);

/**
 * How many ports in a row a mesh is given: it looks for its own from the first upwards, and its processes give them back and take
 * them again as they die and are started. A port beyond would be some other test's. The largest of our tests has fifteen processes, of
 * at most three ports each.
 */
const ofMesh = 60;

/** The first of those that a mesh finds its ports among. */
export const freeMeshPorts = () => freePorts(ofMesh);

let asked = Promise.resolve(0);

/** The first of `count` in a row, all of them given. One after the other, as two at once would take turns and have none in a row. */
function freePorts(count: number): Promise<number> {
  asked = asked.then(() => find(count));
  return asked;
}

async function find(count: number): Promise<number> {
  for (let [first, found] = [0, 0]; ; ) {
    const port = await next();
    if (!take(port)) found = 0;
    else if (found > 0 && port === first + found) found++;
    else [first, found] = [port, 1];
    if (found === count) return first;
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
