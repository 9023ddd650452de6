// Reads the environment's variables for ports, addresses of peers and certificates.

import { isIP } from "node:net";
import { badVariable, type EnvReader } from "./env.ts";
import { needsOf, type PeerName, peerNames, type Role } from "./roles.ts";

/** Certificates of both ports, and of calls to peers. The files are read again when they change. */
export interface TlsConfig {
  /** This process's own certificate. Undefined: it has none, and only checks those of others. */
  own: { certFile: string; keyFile: string } | undefined;
  /** The authorities that it trusts. Undefined: those of the runtime. */
  caFile: string | undefined;
  /** Must internal callers show a certificate that the CA signed? */
  clientAuth: boolean;
}

/** The addresses of each peer: one or more URLs, each of which may lead to several addresses. */
export type PeerUrls = Readonly<Partial<Record<PeerName, readonly string[]>>>;

/** A bound address. */
export interface HostPort {
  host: string;
  port: number;
}

/** The ports of a process. */
export interface PortsConfig {
  /** Gateway and `all`: the public API. Others: Connect for internal callers. */
  http: HostPort;
  /** For internal callers of any language. Undefined for a role that answers none. */
  grpc: HostPort | undefined;
  /** Metrics, and health beside them. It is always plain, and never the public port. */
  ops: HostPort;
}

/** Variables that name peers. */
export const peerVariables: Readonly<Record<PeerName, string>> = {
  auth: "GENMESH_AUTH_URL",
  billing: "GENMESH_BILLING_URL",
  catalog: "GENMESH_CATALOG_URL",
  text: "GENMESH_TEXT_URL",
  media: "GENMESH_MEDIA_URL",
};

const maxPort = 65_535;

/** Reads the ports. Each must differ from those before it, except for 0, which means any port. */
export function portsConfig(read: EnvReader, role: Role): PortsConfig {
  const host = hostOf(read, role);
  const port = read.integer("PORT", 8080, 0, maxPort);
  const taken = new Map([[port, "PORT"]]);
  const another = (variable: string, fallback: number) => {
    const chosen = read.integer(variable, fallback, 0, maxPort);
    const owner = chosen === 0 ? undefined : taken.get(chosen);
    if (owner) badVariable(variable, `must be another port than ${owner}`, `${chosen}`);
    taken.set(chosen, variable);
    return chosen;
  };
  // A run in one process serves the programs of its machine, except for the public port. A mesh is called, probed and scraped from
  // other machines, and its network decides who reaches a port.
  const internalHost = role === "all" ? "127.0.0.1" : host;
  return {
    http: { host, port },
    grpc: needsOf[role].answers
      ? { host: internalHost, port: another("GRPC_PORT", 9090) }
      : undefined,
    ops: { host: internalHost, port: another("GENMESH_OPS_PORT", 9091) },
  };
}

function hostOf(read: EnvReader, role: Role): string {
  const host = read.text("HOST") ?? (role === "all" ? "127.0.0.1" : "0.0.0.0");
  if (isIP(host) || /^[A-Za-z0-9.-]+$/.test(host)) return host;
  return badVariable("HOST", "must be an address or a host name", host);
}

/** Reads the peers that `role` calls. A missing one is refused. */
export function peersConfig(read: EnvReader, role: Role): PeerUrls {
  const needed = peerNames.filter((name) => needsOf[role].peers.includes(name));
  return Object.fromEntries(
    needed.map((name) => {
      const variable = peerVariables[name];
      const urls = peerUrls(read, name);
      if (urls.length === 0) {
        badVariable(variable, `must be set for role ${role}: ${peerAccepts}`);
      }
      return [name, urls];
    }),
  );
}

const peerAccepts = "http://HOST:PORT or https://HOST:PORT, several separated by commas";

/** The URLs of a peer. Empty where its variable is not set. */
export function peerUrls(read: EnvReader, name: PeerName): string[] {
  const variable = peerVariables[name];
  return read.list(variable).map((value) => {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
    return isOrigin ? url.origin : badVariable(variable, `must be ${peerAccepts}`);
  });
}

/** Reads the certificates. Undefined where neither is set. */
export function tlsConfig(read: EnvReader): TlsConfig | undefined {
  const [cert, key] = ["GENMESH_TLS_CERT_FILE", "GENMESH_TLS_KEY_FILE"] as const;
  const [certFile, keyFile] = [read.text(cert), read.text(key)];
  const caFile = read.text("GENMESH_TLS_CA_FILE");
  const clientAuth = read.flag("GENMESH_TLS_CLIENT_AUTH");
  if (certFile && !keyFile) badVariable(key, `must be set beside ${cert}`);
  if (keyFile && !certFile) badVariable(cert, `must be set beside ${key}`);
  if (clientAuth && !(certFile && caFile)) {
    badVariable(
      "GENMESH_TLS_CLIENT_AUTH",
      `needs ${cert}, ${key} and GENMESH_TLS_CA_FILE beside it`,
    );
  }
  if (!certFile && !caFile) return undefined;
  return {
    own: certFile && keyFile ? { certFile, keyFile } : undefined,
    caFile,
    clientAuth,
  };
}
