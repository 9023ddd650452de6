// Decides which processes a mesh on this machine has, on which ports, and with which variables. It starts none.

import { peerVariables } from "../config-wire.ts";
import type { Env } from "../env.ts";
import { hostInUrl } from "../listen.ts";
import { type MeshRole, needsOf, type PeerName, peerNames, roles } from "../roles.ts";
import { portsFrom } from "./ports.ts";

/** The roles of a mesh. */
export const meshRoles = roles.filter((role): role is MeshRole => role !== "all");

/** The number of processes of each role. */
export type Replicas = Readonly<Record<MeshRole, number>>;

/** One process of a mesh. */
export interface PlannedProcess {
  /** `text-1`. */
  name: string;
  role: MeshRole;
  /** The URL for its callers: `http://HOST:PORT`. */
  url: string;
  /** The plain URL of its metrics and health. */
  opsUrl: string;
  /** All its environment variables. */
  env: Record<string, string | undefined>;
}

/** The parts of which a mesh is planned. */
export interface PlanOptions {
  replicas: Replicas;
  /** Variables that all processes share: stores, tokens, catalog, TLS. */
  env: Env;
  /** The host on which all of them listen. */
  host: string;
  /** Do their HTTP and gRPC ports speak TLS? */
  tls: boolean;
  /** The first ports to try, for the public and for callers of the mesh. 0: any. */
  firstPorts: { public: number; internal: number };
}

/** Processes with their ports. Each gets the addresses of all its peers. */
export async function planMesh(options: PlanOptions): Promise<PlannedProcess[]> {
  const { host, firstPorts } = options;
  const given = new Set<number>();
  const ports = {
    public: portsFrom(host, firstPorts.public, given),
    internal: portsFrom(host, firstPorts.internal, given),
  };
  const placed: PlannedProcess[] = [];
  for (const role of meshRoles) {
    for (let n = 1; n <= options.replicas[role]; n++) {
      placed.push(await place(role, n, options, ports));
    }
  }
  const peers = Object.fromEntries(
    peerNames.map((name) => [peerVariables[name], urlsOf(name, placed).join(",")]),
  );
  return placed.map((one) => ({ ...one, env: { ...one.env, ...peers } }));
}

async function place(
  role: MeshRole,
  n: number,
  { env, host, tls }: PlanOptions,
  ports: Record<"public" | "internal", () => Promise<number>>,
): Promise<PlannedProcess> {
  const port = await (role === "gateway" ? ports.public() : ports.internal());
  const own: Record<string, string> = { HOST: host, PORT: `${port}`, GENMESH_ROLE: role };
  if (needsOf[role].answers) own.GRPC_PORT = `${await ports.internal()}`;
  const opsPort = await ports.internal();
  own.GENMESH_OPS_PORT = `${opsPort}`;
  return {
    name: `${role}-${n}`,
    role,
    url: `${tls ? "https" : "http"}://${hostInUrl(host)}:${port}`,
    opsUrl: `http://${hostInUrl(host)}:${opsPort}`,
    // The data directory belongs to the runner. Each process makes a temporary folder.
    env: { ...env, GENMESH_DATA_DIR: undefined, ...own },
  };
}

function urlsOf(name: PeerName, placed: readonly PlannedProcess[]): string[] {
  return placed.filter(({ role }) => role === name).map(({ url }) => url);
}
