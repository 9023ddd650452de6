import type { BlobStore } from "#kit/blobs.ts";
import { createCatalogView } from "#kit/catalog-client.ts";
import type { Peers } from "#kit/peers.ts";
import { createAdmission } from "../../gateway/admission/index.ts";
import { buildGateway } from "../../gateway/app.ts";
import { countInFlight } from "./listen.ts";
import type { HostContext } from "./mesh.ts";

/** The public port of a process. */
export interface HostEdge extends AsyncDisposable {
  /** Resolves when keys and catalog are at hand. */
  ready(signal: AbortSignal): Promise<void>;
  /** Answers the base URL. */
  listen(): Promise<string>;
  /** Resolves at the first moment without an open request, or when `signal` aborts. */
  whenIdle(signal: AbortSignal): Promise<void>;
  /** Stops listening; what is still open ends with an error event. */
  close(): Promise<void>;
}

/** Milliseconds in which keys and catalog of this very process must have arrived. */
const readyTimeoutMs = 10_000;
/** Milliseconds between two looks, while the edge closes, for connections that no request holds. */
const closeSweepMs = 50;

/** Builds the gateway with what it keeps at hand. */
export async function openEdge(
  context: HostContext,
  deps: {
    peers: Peers;
    blobs: BlobStore;
    notReady: () => string | undefined;
  },
): Promise<HostEdge> {
  const { config, clock, log } = context;
  const { peers } = deps;
  await using stack = new AsyncDisposableStack();
  const admission = stack.use(createAdmission({ ...context, auth: peers.auth }));
  const catalog = stack.use(createCatalogView({ catalog: peers.catalog, clock, log }));
  const inFlight = countInFlight();
  const cutOff = new AbortController();
  const app = await buildGateway({
    ...context,
    ...deps,
    admission,
    catalog,
    notReady: () => deps.notReady() ?? admission.notReady() ?? catalog.notReady(),
    cutOff: cutOff.signal,
    createServer: (options, handler) => inFlight.createServer(options, handler),
    settings: {
      ...(config.http.publicUrl === undefined ? {} : { publicUrl: config.http.publicUrl }),
      ...(config.http.trustProxy.length === 0
        ? {}
        : { trustProxy: config.http.trustProxy.join(",") }),
    },
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    cutOff.abort();
    if (closing) return closing;
    // Node waits for a connection on which nothing was ever asked, and for one that a stream promised to keep alive.
    const sweep = setInterval(() => {
      if (inFlight.isIdle()) app.server.closeAllConnections();
    }, closeSweepMs);
    closing = app.close().finally(() => clearInterval(sweep));
    return closing;
  };
  stack.defer(close);
  const owned = stack.move();
  return {
    async ready(signal) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(readyTimeoutMs)]);
      await Promise.race([Promise.all([admission.ready, catalog.ready()]), rejected(limit)]);
    },
    async listen() {
      await app.listen({ host: config.http.host, port: config.http.port });
      const address = app.server.address();
      const port = typeof address === "object" && address ? address.port : config.http.port;
      const host = config.http.host.includes(":") ? `[${config.http.host}]` : config.http.host;
      return `http://${host}:${port}/v1`;
    },
    whenIdle: (signal) => inFlight.whenIdle(signal),
    close,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
