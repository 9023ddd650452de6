import { randomBytes } from "node:crypto";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { traceFields } from "#kit/telemetry/spans.ts";
import { operatorPeers } from "../../services/host/cli/client.ts";
import { envToConfig, envToOperatorConfig } from "../../services/host/config.ts";
import { type RoleProcess, startRole } from "../../services/host/role.ts";
import { readMeshArguments } from "../../services/host/run-mesh/options.ts";
import { planMesh } from "../../services/host/run-mesh/plan.ts";
import { operatorEnvOf, stopOrder, withoutMadeToken } from "../../services/host/run-mesh/run.ts";
import { freeMeshPorts } from "./free-port.ts";
import { jumpClock } from "./jump-clock.ts";
import type { MeshOptions, RunningMesh } from "./mesh.ts";
import { ownStores } from "./stores.ts";

/**
 * Every role of a mesh in this process. Each has its own configuration, ports, metrics and connections to the stores, and calls the others
 * over the network. Nine processes take ten seconds of two cores to start, these roles one. Resolves when all are ready. Undefined where a
 * store has no server.
 */
export async function startMeshRoles(options: MeshOptions): Promise<RunningMesh | undefined> {
  await using stack = new AsyncDisposableStack();
  const stores = await ownStores(stack, "e2e");
  if (!stores) return undefined;
  const token = () => randomBytes(32).toString("hex");
  const { GENMESH_ADMIN_TOKEN: given } = options.env;
  const adminToken = given ?? token();
  const host = "127.0.0.1";
  const first = await freeMeshPorts();
  const planned = await planMesh({
    replicas: readMeshArguments(["--replicas", options.replicas]).replicas,
    env: {
      GENMESH_LOG_LEVEL: "trace",
      GENMESH_MESH_TOKEN: token(),
      GENMESH_ADMIN_TOKEN: adminToken,
      ...stores.env,
      ...options.env,
    },
    host,
    tls: false,
    firstPorts: { public: first, internal: first },
  });
  const plan = withoutMadeToken(planned, given);
  const clock = jumpClock();
  const logger = createLogger(
    "trace",
    { write: (line) => void options.log.push(line) },
    traceFields,
  );
  const start = new AbortController();
  const starting = plan.map(async ({ env, role }) => {
    const metrics = createMetrics();
    const { signal } = start;
    const options = { log: logger, signal, clock, metrics };
    return { role, running: await startRole(envToConfig(env), options) };
  });
  stack.defer(async () => {
    start.abort(new Error("the mesh ends"));
    const settled = await Promise.allSettled(starting);
    const all = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    for (const roles of stopOrder) {
      const ending = all.filter(({ role }) => roles.includes(role));
      await Promise.all(ending.map(({ running }) => stop(running)));
    }
  });
  const running = await Promise.all(starting);
  const operator = operatorPeers(envToOperatorConfig(operatorEnvOf(plan, adminToken)), undefined);
  const owned = stack.move();
  return {
    baseUrls: running.filter(({ role }) => role === "gateway").map(({ running: { url } }) => url),
    opsUrls: Object.fromEntries(plan.map(({ name, opsUrl }) => [name, opsUrl])),
    operator,
    now: clock.now,
    jump: async (ms) => clock.jump(ms),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Milliseconds. Requests that a test leaves open must not delay the end of its world. */
const drainMs = 1_000;

async function stop(running: RoleProcess): Promise<void> {
  await running.drain(AbortSignal.timeout(drainMs)).catch(() => {});
  await running[Symbol.asyncDispose]();
}
