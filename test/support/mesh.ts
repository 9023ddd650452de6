import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Peers } from "#common/agreements/peers.ts";
import { operatorPeers } from "../../services/host/cli/client.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";
import { readMeshArguments } from "../../services/host/run-mesh/options.ts";
import { startLocalMesh } from "../../services/host/run-mesh/run.ts";
import { freeMeshPorts } from "./free-port.ts";
import { ownStores } from "./stores.ts";
import { until } from "./until.ts";

/** Every role, on the mesh's own stores at the real servers. */
export interface RunningMesh extends AsyncDisposable {
  /** Those of every gateway. */
  baseUrls: string[];
  /** The addresses of the metrics of each process, by its name. */
  opsUrls: Readonly<Record<string, string>>;
  /** Has the admin token. */
  operator: Peers;
  /** Milliseconds since the epoch by the mesh's clock. */
  now(): number;
  /** Moves the clocks of all roles forward. They have done so when this resolves. */
  jump(ms: number): Promise<void>;
}

/** Settings of a mesh. */
export interface MeshOptions {
  /** The number for each role. */
  replicas: string;
  dataDir: string;
  env: Record<string, string>;
  /** Gets the log lines of all roles, a JSON object each. */
  log: string[];
}

const clock = fileURLToPath(new URL("./mesh-clock.ts", import.meta.url));

/** Starts a mesh of processes and resolves when all are ready. Undefined where a store has no server. */
export async function startMeshProcesses(options: MeshOptions): Promise<RunningMesh | undefined> {
  await using stack = new AsyncDisposableStack();
  const stores = await ownStores(stack, "e2e");
  if (!stores) return undefined;
  const { dataDir, log } = options;
  const firstPort = await freeMeshPorts();
  const clockFile = join(dataDir, "clock");
  writeFileSync(clockFile, "0");
  const env = {
    PATH: process.env.PATH,
    PORT: String(firstPort),
    GENMESH_DATA_DIR: dataDir,
    GENMESH_LOG_LEVEL: "trace",
    // Requests that a test leaves open must not delay the end of its world.
    GENMESH_DRAIN_MS: "1000",
    TEST_CLOCK_FILE: clockFile,
    ...stores.env,
    ...options.env,
  };
  const mesh = await startLocalMesh({
    ...readMeshArguments(["--replicas", options.replicas]),
    internalPort: firstPort,
    env,
    log(line) {
      const said = line.slice(line.indexOf("|") + 2);
      if (said.startsWith("{")) log.push(said);
    },
    nodeArgs: ["--import", clock],
    signal: AbortSignal.timeout(startWithinMs),
  });
  stack.defer(() => mesh.stop(AbortSignal.timeout(stopWithinMs)));
  const operator = operatorPeers(envToOperatorConfig({ ...env, ...mesh.operatorEnv }), undefined);
  let aheadMs = 0;
  const owned = stack.move();
  return {
    baseUrls: mesh.baseUrls,
    opsUrls: mesh.opsUrls,
    operator,
    now: () => Date.now() + aheadMs,
    async jump(ms) {
      aheadMs += ms;
      writeFileSync(clockFile, `${aheadMs}`);
      await until("every process to have jumped", () => {
        const clocks = shownClocks(clockFile);
        const isComplete = clocks.length >= Object.keys(mesh.opsUrls).length;
        return isComplete && clocks.every((shownMs) => shownMs >= aheadMs);
      });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Milliseconds. Seven processes and other work share the cores of a test machine. */
const [startWithinMs, stopWithinMs] = [120_000, 15_000];

/** The milliseconds by which the clocks of the living processes are ahead. */
function shownClocks(clockFile: string): number[] {
  const folder = dirname(clockFile);
  const beside = `${basename(clockFile)}.`;
  const names = readdirSync(folder).filter((name) => name.startsWith(beside));
  const living = names.filter((name) => isAlive(Number(name.slice(beside.length))));
  return living.map((name) => Number(readFileSync(join(folder, name), "utf8")));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
