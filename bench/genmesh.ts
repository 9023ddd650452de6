import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Peers } from "#common/agreements/peers.ts";
import { bundleOf } from "../deploy/build.ts";
import { operatorPeers } from "../services/host/cli/client.ts";
import { envToOperatorConfig } from "../services/host/config.ts";
import { peerVariables } from "../services/host/config-wire.ts";
import { readMeshArguments } from "../services/host/run-mesh/options.ts";
import { planMesh } from "../services/host/run-mesh/plan.ts";
import { type ServerUrls, storesAt } from "../test/support/stores.ts";
import { catalogFor, makeKeys, requestsOf } from "./accounts.ts";
import { host, nextPort } from "./ports.ts";
import { type ProgramOptions, startProgram, targetCore } from "./processes.ts";
import type { Target } from "./target.ts";

/** A genmesh in front of the bench's mock, with accounts that have funds. */
export type Genmesh = Target & AsyncDisposable;
/** A genmesh on real stores. */
export type GenmeshMesh = Genmesh & { databaseUrl: string; blobsUrl: string };

/** Settings of its start. */
export interface GenmeshOptions {
  upstreamPort: number;
  /** The folder for CPU profiles. Undefined: none is taken. */
  profileFolder: string | undefined;
}

/** The program of the image. The bench builds it before anything is started. */
export const genmeshProgram = `../${bundleOf("services/host/main.ts")}`;
/** The flags of `npm start` and of the image, for Node and the allocator. */
export const genmeshNodeArgs = ["--use-largepages=silent", "--max-semi-space-size=8"] as const;
export const genmeshEnv = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "65536",
  MALLOC_TRIM_THRESHOLD_: "524288",
} as const;
const adminToken = "admin-token-of-the-bench";
const meshToken = "mesh-token-of-the-bench";

/** Variables of a process that traces a tenth of its requests, like a busy installation. */
export function tracingEnv(collectorPort: number): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://${host}:${collectorPort}`,
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.1",
  };
}

/** Starts one process on a new data directory. It is like the image, except for ports, catalog and accounts. */
export async function startOneProcess(
  options: GenmeshOptions,
  { name, env }: { name: "one" | "traced"; env: Record<string, string> } = { name: "one", env: {} },
): Promise<Genmesh> {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  const grpcPort = await nextPort();
  const child = stack.use(
    startProgram(genmeshProgram, {
      ...programOptions(options),
      env: {
        ...(await commonEnv(folder, options)),
        ...env,
        HOST: host,
        PORT: "0",
        GRPC_PORT: `${grpcPort}`,
        GENMESH_OPS_PORT: "0",
        GENMESH_DATA_DIR: join(folder, "data"),
      },
    }),
  );
  const baseUrl = baseUrlIn(await child.firstLine);
  const operator = envToOperatorConfig({ GENMESH_ADMIN_TOKEN: adminToken });
  const peers = operatorPeers(operator, `${host}:${grpcPort}`);
  const target = await targetAt(baseUrl, peers);
  const owned = stack.move();
  return {
    ...target,
    name,
    pids: [child.pid],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Starts a mesh, one process for each role, on its own stores at real servers. They are removed at its end. */
export async function startMesh(urls: ServerUrls, options: GenmeshOptions): Promise<GenmeshMesh> {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  const stores = storesAt(stack, urls, "bench");
  const plan = await planMesh({
    ...readMeshArguments(["--replicas", "1"]),
    env: { ...(await commonEnv(folder, options)), ...stores.env },
    host,
    tls: false,
    firstPorts: { public: 0, internal: 0 },
  });
  const started = plan.map(({ role, env }) => {
    const child = stack.use(startProgram(genmeshProgram, { ...programOptions(options), env }));
    return { role, env, child };
  });
  const lines = await Promise.all(started.map(({ child }) => child.firstLine));
  const baseUrl = baseUrlIn(lines[started.findIndex(({ role }) => role === "gateway")] ?? "");
  const peerUrls = Object.values(peerVariables).map((name) => [name, started[0]?.env[name]]);
  const operator = { ...Object.fromEntries(peerUrls), GENMESH_ADMIN_TOKEN: adminToken };
  const target = await targetAt(baseUrl, operatorPeers(envToOperatorConfig(operator), undefined));
  const owned = stack.move();
  return {
    ...target,
    name: "mesh",
    pids: started.map(({ child }) => child.pid),
    databaseUrl: stores.urls.mongodb,
    blobsUrl: stores.urls.s3,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A folder that `stack` removes. */
export async function scratchFolder(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-bench-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function programOptions({ profileFolder }: GenmeshOptions): ProgramOptions {
  const profile = profileFolder ? ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`] : [];
  return { core: targetCore, nodeArgs: [...genmeshNodeArgs, ...profile] };
}

async function commonEnv(folder: string, { upstreamPort }: GenmeshOptions) {
  const [catalog, scratch] = [join(folder, "catalog.json"), join(folder, "scratch")];
  await writeFile(catalog, JSON.stringify(catalogFor(upstreamPort)));
  await mkdir(scratch);
  return {
    ...genmeshEnv,
    TMPDIR: scratch,
    GENMESH_CATALOG: catalog,
    GENMESH_ADMIN_TOKEN: adminToken,
    GENMESH_MESH_TOKEN: meshToken,
  };
}

/** The public base URL in the line that a process prints when it is ready. */
function baseUrlIn(line: string): string {
  return `${new URL(/http:\S+/.exec(line)?.[0] ?? "").origin}/v1`;
}

async function targetAt(baseUrl: string, peers: Peers) {
  const requests = await requestsOf(baseUrl, await makeKeys(peers));
  return { port: Number(new URL(baseUrl).port), requests };
}
