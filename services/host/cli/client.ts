// Connects the command with the services: finds the address, the admin token and the certificates. All commands except `generate`
// call services by it.

import { readFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
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
  return createPeers((peer) => {
    const [url] = server === undefined ? (config.peers[peer] ?? []) : [];
    const { address, transport } = operatorTransport(config, { server, url });
    const hint =
      url === undefined
        ? serverHint
        : `is it running, and is GENMESH_${peer.toUpperCase()}_URL its address?`;
    const onRepeat = () =>
      tell(`the service ${peer} at ${address} is away; trying for ${againForMs / 1_000} s`);
    return patientTransport(transport, { service: peer, address, hint, onRepeat });
  });
}

/** An address of a name. */
export interface Address {
  address: string;
  family: number;
}

/** The place that is called. */
export interface Called {
  /** The gRPC port, as `--server` names it. Default: that of one process on this machine. */
  server?: string | undefined;
  /** A service's Connect port instead. */
  url?: string | undefined;
  /** The only address of the URL's name that is called. */
  at?: Address;
  /** Milliseconds for one call. Default: 30,000. */
  timeoutMs?: number;
}

/** Calls that carry the admin token, and are not repeated. */
export function operatorTransport(
  config: OperatorConfig,
  { server = defaultServer, url, at, timeoutMs = callTimeoutMs }: Called,
): { address: string; transport: Transport } {
  const common = {
    interceptors: [tokenInterceptor(adminToken(config))],
    defaultTimeoutMs: timeoutMs,
  };
  const nodeOptions = { ...tlsOptions(config), ...(at ? { lookup: onlyAddress(at) } : {}) };
  if (url === undefined) {
    const address = toUrl(server);
    const transport = createGrpcTransport({ ...common, nodeOptions, baseUrl: address });
    return { address, transport };
  }
  const connect = { ...common, nodeOptions, baseUrl: url, httpVersion: "1.1" } as const;
  return { address: url, transport: createConnectTransport(connect) };
}

/** A look-up that answers one address, so that a certificate is still checked by the name. */
function onlyAddress({ address, family }: Address): LookupFunction {
  return (_, { all }, done) =>
    all ? done(null, [{ address, family }]) : done(null, address, family);
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
