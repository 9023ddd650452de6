// Reads the certificates that the configuration names, for servers and for calls to peers, and takes new ones as their files
// change.

import { createServer, type ServerOptions } from "node:https";
import {
  followTls,
  openTls,
  type ServerTls,
  serverTlsOptions,
  TlsFileError,
  type TlsMaterial,
  type TlsSource,
} from "#kit/rpc/tls.ts";
import { tlsEndsAt } from "#kit/rpc/tls-material.ts";
import type { HostContext } from "./context.ts";
import { ConfigError } from "./env.ts";
import type { MakeServer } from "./listen.ts";

/** The certificates of a process. Each is undefined where the configuration names none. */
export interface Certificates {
  /** For calls to peers. */
  client: TlsSource | undefined;
  /** For ports whose callers belong to the mesh. */
  server: ServerTls | undefined;
}

/** Reads the files, and goes on reading them until `stack` ends. Throws ConfigError where they cannot be used. */
export async function openCertificates(
  context: HostContext,
  stack: AsyncDisposableStack,
): Promise<Certificates> {
  const { tls } = context.config;
  if (!tls) return { client: undefined, server: undefined };
  try {
    const source = stack.use(await openTls({ ...tls.own, caFile: tls.caFile }, context));
    if (tls.own) tellEnd(source, context);
    const server = tls.own && { source, clientAuth: tls.clientAuth };
    return { client: source, server };
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    throw new ConfigError(`GENMESH_TLS_${error.part.toUpperCase()}_FILE: ${error.message}`);
  }
}

/** Exports when the certificate ends, also of those that follow it. */
function tellEnd(source: TlsSource, { metrics }: HostContext): void {
  const end = metrics.gauge(
    "genmesh_tls_certificate_end_timestamp_seconds",
    "When the certificate of this process ends.",
    [],
  );
  const tell = (material: TlsMaterial) => {
    end.of().value = Date.parse(tlsEndsAt(material) ?? "") / 1_000;
  };
  tell(source.current());
  source.onChange(tell);
}

/** Makes servers of HTTP/1.1 that speak TLS and take new certificates as they come. Undefined: plain servers. */
export function tlsServerMaker(tls: ServerTls | undefined): MakeServer | undefined {
  if (!tls) return undefined;
  return (options: ServerOptions, handler) => {
    const server = createServer({ ...options, ...serverTlsOptions(tls) }, handler);
    followTls(server, tls);
    return server;
  };
}

/** For callers from outside, who show a key of the API and no certificate. */
export function withoutClientAuth(tls: ServerTls | undefined): ServerTls | undefined {
  return tls && { ...tls, clientAuth: false };
}
