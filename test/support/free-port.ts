import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { portsFrom } from "../../services/host/run-mesh/ports.ts";

/**
 * The first port that this process of a test run tries. Each process has a thousand of its own, which differ between runs. A system gives
 * ports above them to outgoing connections, and one of these could take a port between its choice and its use.
 */
const firstOwnPort =
  20_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 7) * 1_000 + (process.pid % 500);

const next = portsFrom("127.0.0.1", firstOwnPort);

/** A file for each port that a test has, with the id of its process. So two runs on one machine never get the same port. */
const givenPorts = join(tmpdir(), "genmesh-test-ports");
mkdirSync(givenPorts, { recursive: true });

/** Finds ports of the loopback that no program listens on, each once. */
export const freePort = () => freePorts(1);

/**
 * The number of ports in a row for a mesh. It searches its own from the first upwards. Its processes free them and take them again as they
 * are killed and started. A port beyond them could be another test's. The largest test has fifteen processes, with at most three ports
 * each.
 */
const ofMesh = 60;

/** The first of the ports in which a mesh searches its own. */
export const freeMeshPorts = () => freePorts(ofMesh);

let asked = Promise.resolve(0);

/**
 * The first of `count` ports in a row, all of them written into files. Calls run one after the other, because two at once would alternate
 * and get none in a row.
 */
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

/** Undefined where the file is being written or was just removed. */
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
