// Builds the public port: the gateway with its keys, its catalog, the console, and the work that a gateway drives. A run in one
// process and the role gateway both call it.

import { driveClosings } from "#common/agreements/account-closing.ts";
import { deliverAlerts } from "#common/agreements/alert-delivery.ts";
import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { TextPort } from "#common/agreements/text-port.ts";
import { untilAborted } from "#kit/base/abort.ts";
import type { ServerTls } from "#kit/rpc/tls.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import { createAdmission } from "../../gateway/admission/index.ts";
import { buildGateway } from "../../gateway/app.ts";
import type { ConsoleSettings } from "../../gateway/context.ts";
import { tlsServerMaker, withoutClientAuth } from "./certificates.ts";
import { type ConsoleConfig, readClientSecret } from "./config-console.ts";
import type { HostContext } from "./context.ts";
import { countInFlight, hostInUrl } from "./listen.ts";

/** The public port of a process. */
export interface HostEdge extends AsyncDisposable {
  /** Undefined when requests will be served. Otherwise the reason. */
  notReady(): string | undefined;
  /** Resolves when keys and catalog are there. Rejects where those of this same process do not come. */
  ready(signal: AbortSignal): Promise<void>;
  /** Answers the base URL. */
  listen(): Promise<string>;
  /**
   * Resolves at the first moment without an open request after all WebSockets have closed, or when `signal` aborts. From now on every
   * answer closes its connection.
   */
  whenIdle(signal: AbortSignal): Promise<void>;
  /** Resolves when callers have left, for which they have a while, or when `signal` aborts. */
  whenLeft(signal: AbortSignal): Promise<void>;
  /** Stops listening. An open request ends with an error event. */
  close(): Promise<void>;
}

/** Milliseconds in which keys and catalog of this same process must have arrived. */
const readyTimeoutMs = 10_000;
/** Milliseconds between two searches for connections without a request, while the edge closes. */
const closeSweepMs = 50;

/** Builds the gateway with its cached keys and catalog. */
export async function openEdge(
  context: HostContext,
  deps: {
    peers: Peers;
    text: TextPort;
    catalog: LiveCatalog;
    blobs: BlobStore;
    notReady: () => string | undefined;
    tls: ServerTls | undefined;
    /** The secret with which an operator signs in to the console. Undefined: no operator can. */
    operatorToken: string | undefined;
  },
): Promise<HostEdge> {
  const { config } = context;
  const { peers, catalog, tls } = deps;
  await using stack = new AsyncDisposableStack();
  const admission = stack.use(
    createAdmission({ ...context, auth: peers.auth, sharesRates: config.role !== "all" }),
  );
  const notReady = () => deps.notReady() ?? admission.notReady() ?? catalog.notReady();
  const inFlight = countInFlight();
  const cutOff = new AbortController();
  const app = await buildGateway({
    ...context,
    peers,
    text: deps.text,
    blobs: deps.blobs,
    admission,
    catalog,
    notReady,
    cutOff: cutOff.signal,
    createServer: (options, handler) =>
      inFlight.createServer(options, handler, tlsServerMaker(withoutClientAuth(tls))),
    settings: {
      ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
      corsOrigins: config.corsOrigins,
      webSockets: config.webSockets,
      traces: config.telemetry?.traces?.accounts,
      ...(config.trustProxy.length === 0 ? {} : { trustProxy: config.trustProxy.join(",") }),
      ...(config.security ? { security: config.security } : {}),
      ...(config.console ? { console: consoleSettings(config.console, deps.operatorToken) } : {}),
    },
  });
  // Gateways reach every service, so they drive work that needs all of them.
  const life = new AbortController();
  const driven = [driveClosings, deliverAlerts].map((drive) =>
    drive({ ...context, peers }, life.signal),
  );
  stack.defer(async () => {
    life.abort();
    await Promise.all(driven);
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    cutOff.abort();
    if (closing) return closing;
    // Node waits for a connection without any request, and for one that a stream promised to keep alive.
    const sweep = setInterval(() => {
      if (inFlight.isIdle()) app.server.closeAllConnections();
    }, closeSweepMs);
    closing = app.close().finally(() => clearInterval(sweep));
    return closing;
  };
  stack.defer(close);
  const owned = stack.move();
  return {
    notReady,
    async ready(signal) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(readyTimeoutMs)]);
      await untilAborted(Promise.all([admission.ready, catalog.ready()]), limit);
    },
    async listen() {
      const { host, port } = config.ports.http;
      await app.listen({ host, port });
      const address = app.server.address();
      const bound = typeof address === "object" && address ? address.port : port;
      return `${tls ? "https" : "http"}://${hostInUrl(host)}:${bound}/v1`;
    },
    async whenIdle(signal) {
      await app.sockets.whenGone(signal);
      await inFlight.whenIdle(signal);
    },
    async whenLeft(signal) {
      app.sockets.drain();
      await inFlight.whenLeft(signal);
    },
    close,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function consoleSettings(
  { oidc }: ConsoleConfig,
  operatorToken: string | undefined,
): ConsoleSettings {
  return {
    ...(operatorToken === undefined ? {} : { operatorToken }),
    ...(oidc ? { oidc: { ...oidc, clientSecret: readClientSecret(oidc.clientSecretFile) } } : {}),
  };
}
