import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { tokenInterceptor } from "#kit/rpc/access.ts";
import type { OperatorConfig } from "../config.ts";
import { ConfigError } from "../env.ts";
import { adminTokenFile } from "../tokens.ts";
import { againForMs } from "./again.ts";
import { patientTransport } from "./away.ts";
import { serverHint } from "./explain.ts";

/** The default address at which the one-process run answers internal callers. */
export const defaultServer = "127.0.0.1:9090";
/** Milliseconds for one call of the operator. */
const callTimeoutMs = 30_000;

/**
 * Clients that carry the admin token. `server` (HOST:PORT or URL of a gRPC port) takes precedence over the mesh's own variables, which name
 * the services' Connect ports. `tell` writes a line for people while a call waits for a service that is away.
 */
export function operatorPeers(
  config: OperatorConfig,
  server: string | undefined,
  tell: (line: string) => void = () => {},
): Peers {
  const common = {
    interceptors: [tokenInterceptor(adminToken(config))],
    defaultTimeoutMs: callTimeoutMs,
    nodeOptions: tlsOptions(config),
  };
  return createPeers((peer) => {
    const [url] = server === undefined ? (config.peers[peer] ?? []) : [];
    const address = url ?? toUrl(server ?? defaultServer);
    const transport =
      url === undefined
        ? createGrpcTransport({ ...common, baseUrl: address })
        : createConnectTransport({ ...common, baseUrl: address, httpVersion: "1.1" });
    const hint =
      url === undefined
        ? serverHint
        : `is it running, and is GENMESH_${peer.toUpperCase()}_URL its address?`;
    const onRepeat = () =>
      tell(`the service ${peer} at ${address} is away; trying for ${againForMs / 1_000} s`);
    return patientTransport(transport, { service: peer, address, hint, onRepeat });
  });
}

/** The certificates that a mesh with TLS asks for. */
function tlsOptions({ tls }: OperatorConfig) {
  const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file));
  const [ca, cert, key] = [tls?.caFile, tls?.own?.certFile, tls?.own?.keyFile].map(read);
  return { ...(ca ? { ca } : {}), ...(cert ? { cert } : {}), ...(key ? { key } : {}) };
}

function adminToken(config: OperatorConfig): string {
  if (config.adminToken) return config.adminToken;
  try {
    return readFileSync(join(config.dataDir, adminTokenFile), "utf8").trim();
  } catch {
    throw new ConfigError(
      `no admin token: set GENMESH_ADMIN_TOKEN, or GENMESH_DATA_DIR to the server's data directory (looked in ${config.dataDir})`,
    );
  }
}

function toUrl(server: string): string {
  const url = server.includes("://") ? server : `http://${server}`;
  if (!URL.canParse(url)) throw new ConfigError(`--server must be HOST:PORT (it is "${server}")`);
  return url;
}
