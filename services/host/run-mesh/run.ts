// Starts all processes of a mesh on this machine, waits until they are ready, and stops them in order. `plan.ts` says which ones,
// and `child.ts` runs each.

import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { systemClock } from "#kit/time/clock.ts";
import { type Bootstrap, bootstrap } from "../bootstrap.ts";
import { operatorPeers } from "../cli/client.ts";
import { type Config, envToConfig, envToOperatorConfig } from "../config.ts";
import { peerVariables } from "../config-wire.ts";
import { type DataDir, openDataDir } from "../data-dir.ts";
import { ConfigError, type Env } from "../env.ts";
import type { MeshRole } from "../roles.ts";
import { keptSealSecret, loadTokens } from "../tokens.ts";
import { type MeshChild, startChild } from "./child.ts";
import type { MeshArguments } from "./options.ts";
import { type PlannedProcess, planMesh } from "./plan.ts";

/** A mesh of processes on this machine. */
export interface LocalMesh {
  /** Public base URLs, ending in `/v1`. */
  baseUrls: string[];
  /** The URL of each process's metrics, by its name. */
  opsUrls: Readonly<Record<string, string>>;
  /** Variables with which the operator command finds the mesh. */
  operatorEnv: Record<string, string>;
  bootstrap: Bootstrap;
  /** Stops all processes, the gateways first. A process that has not ended when `signal` aborts is killed. */
  stop(signal: AbortSignal): Promise<void>;
}

/** Options for starting a mesh. */
export interface LocalMeshOptions extends MeshArguments {
  env: Env;
  /** Called with each line of the shared log. */
  log(line: string): void;
  /** The form in which a line of a process is shown there. Default: unchanged. */
  shown?: ((line: string) => string) | undefined;
  /** See `ChildOptions`. */
  nodeArgs?: readonly string[];
  /** Aborts the start. */
  signal: AbortSignal;
}

/** Processes in the order in which they stop, each group together: callers before the services that they call. */
export const stopOrder: readonly (readonly MeshRole[])[] = [
  ["gateway"],
  ["media-worker"],
  ["text", "media"],
  ["billing", "auth", "catalog"],
];
const defaultHost = "127.0.0.1";

/**
 * Starts every role as processes of its own, and makes the demo account of a new database. The stores are those of the environment.
 * Missing tokens are made and kept in the data directory. Rejects where one of the processes cannot start.
 */
export async function startLocalMesh(options: LocalMeshOptions): Promise<LocalMesh> {
  const { env, signal } = options;
  await using stack = new AsyncDisposableStack();
  // The operator's settings are checked, as role `all` would check them, for the parts that belong to the runner.
  const own = envToConfig({ ...env, GENMESH_ROLE: "all", HOST: env.HOST || defaultHost });
  const dir = stack.use(openDataDir(own.dataDir));
  const tokens = loadTokens(dir, own.tokens, randomIds);
  const shared = {
    ...env,
    GENMESH_MESH_TOKEN: tokens.mesh.join(","),
    GENMESH_ADMIN_TOKEN: tokens.admin,
    ...(own.sealSecrets ? {} : { GENMESH_SECRETS_KEY: keptSealSecret(dir) }),
  };
  const planned = await planOf(own, shared, options);
  const plan = withoutMadeToken(planned, own.tokens.admin);
  // All of them before any start, so that a fault is one line and not fourteen.
  for (const { env: variables } of plan) envToConfig(variables);
  const running = startAll(plan, options);
  stack.defer(() => stopAll(running, AbortSignal.abort()));
  const baseUrls = await allReady(running, signal);
  const operatorEnv = operatorEnvOf(plan, tokens.admin);
  const demo = await makeDemo(dir, own, { ...env, ...operatorEnv }, tokens.admin);
  const owned = stack.move();
  return {
    baseUrls,
    opsUrls: Object.fromEntries(plan.map(({ name, opsUrl }) => [name, opsUrl])),
    operatorEnv,
    bootstrap: demo,
    async stop(late) {
      await stopAll(running, late);
      await owned.disposeAsync();
    },
  };
}

function planOf(own: Config, env: Env, { replicas, internalPort }: LocalMeshOptions) {
  const { host, port } = own.ports.http;
  return planMesh({
    replicas,
    env,
    host,
    tls: own.tls?.own !== undefined,
    firstPorts: { public: port, internal: internalPort },
  });
}

function startAll(
  plan: readonly PlannedProcess[],
  { log, shown = (line) => line, nodeArgs }: LocalMeshOptions,
): MeshChild[] {
  const width = Math.max(...plan.map(({ name }) => name.length));
  return plan.map((planned) =>
    startChild(planned, {
      log: (name, line) => log(`${name.padEnd(width)} | ${shown(line).trimEnd()}`),
      nodeArgs,
      sleep: (ms) => systemClock.sleep(ms),
    }),
  );
}

/** The gateways' base URLs, once every process is ready. */
async function allReady(running: readonly MeshChild[], signal: AbortSignal): Promise<string[]> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    const urls = Promise.all(running.map(({ ready }) => ready));
    const all = await Promise.race([urls, aborted.promise]);
    return all.filter((_, i) => running[i]?.planned.role === "gateway");
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ConfigError(`the mesh could not start: ${(error as Error).message}`);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function stopAll(running: readonly MeshChild[], late: AbortSignal): Promise<void> {
  for (const stage of stopOrder) {
    const leaving = running.filter(({ planned }) => stage.includes(planned.role));
    await Promise.all(leaving.map((child) => child.stop(late)));
  }
}

/** Operators sign in at a gateway that was given the token, not at one with a token that the runner made. */
export function withoutMadeToken(
  plan: readonly PlannedProcess[],
  given: string | undefined,
): readonly PlannedProcess[] {
  if (given !== undefined) return plan;
  return plan.map((one) =>
    one.role === "gateway" ? { ...one, env: { ...one.env, GENMESH_ADMIN_TOKEN: "" } } : one,
  );
}

function makeDemo(dir: DataDir, own: Config, env: Env, adminToken: string): Promise<Bootstrap> {
  const peers = operatorPeers(envToOperatorConfig(env), undefined);
  const log = createLogger(own.logLevel);
  return bootstrap(dir, own.bootstrap, { peers, ids: randomIds, adminToken, log });
}

/** The operator command gets the addresses of all peers, like every process. */
export function operatorEnvOf(
  plan: readonly PlannedProcess[],
  admin: string,
): Record<string, string> {
  const names = Object.values(peerVariables);
  const peers = names.map((name): [string, string] => [name, plan[0]?.env[name] ?? ""]);
  return { ...Object.fromEntries(peers), GENMESH_ADMIN_TOKEN: admin };
}
