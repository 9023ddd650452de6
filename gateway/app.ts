// Builds the public edge: an HTTP server with the rules that every request passes, and all routes. The host opens it. Rules are
// in plugins, operations in routes.

import { createServer, type IncomingMessage, type Server, type ServerOptions } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyServerOptions } from "fastify";
import Fastify from "fastify";
import { schemaless } from "#kit/base/schemaless.ts";
import { boundChunks, boundConnections } from "#kit/edge/connection-bounds.ts";
import { boundPipelining } from "#kit/edge/pipelining.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { BodyReader } from "./body.ts";
import { consoleRoutes } from "./console/index.ts";
import type { Edge, GatewayDeps } from "./context.ts";
import { createDownloads } from "./downloads.ts";
import { createEdgeEvents } from "./events.ts";
import {
  connectionLimits,
  connectionsCheckMs,
  defaultMaxBytesInFlight,
  downloadShare,
  headersTimeoutMs,
  keepAliveTimeoutMs,
  maxHeaderBytes,
  maxParamLength,
  readShare,
  repeatedShare,
  requestTimeoutMs,
  tcpProbeAfterMs,
} from "./limits.ts";
import { admissionRules, byKey } from "./plugins/authentication.ts";
import { cors } from "./plugins/cors.ts";
import { discoveryRoutes } from "./plugins/discovery.ts";
import { docsRoutes } from "./plugins/docs.ts";
import { errorEnvelope } from "./plugins/errors.ts";
import {
  protocolRules,
  refuseChunks,
  refuseConnection,
  refuseOverlong,
  routedUrl,
  takeOddRequests,
} from "./plugins/protocol.ts";
import { requestLog } from "./plugins/request-log.ts";
import { inOrder, type Rule } from "./plugins/rules.ts";
import { tracing } from "./plugins/tracing.ts";
import { unknownRoutes } from "./plugins/unknown-routes.ts";
import { createPublicUrls } from "./public-url.ts";
import { createReaderWatch } from "./readers.ts";
import { v1Routes } from "./routes/v1/index.ts";
import { createSilences } from "./sse.ts";
import { trustedAddresses } from "./trusted.ts";
import { isForResponses, isUpgrade, takeUpgrades } from "./upgrade.ts";
import { openResponseSockets } from "./websocket/index.ts";

/**
 * Builds the public edge, which does not listen by itself (`app.listen`). Rejects where a setting makes no sense. Closing it lets open
 * requests end and closes idle connections.
 */
export async function buildGateway(deps: GatewayDeps): Promise<FastifyInstance> {
  const edge = createEdge(deps);
  const app = Fastify(serverOptions(edge));
  // Bodies are sent to the services as bytes. The framework neither parses them nor checks their content type.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.decorateRequest("caller", null);
  app.decorateRequest("session", null);
  app.decorateRequest("refusal", null);
  app.decorateRequest("awaitsContinue", false);
  app.decorateReply("whenClosed", null);
  app.decorateReply("heldBytes", 0);
  app.decorateReply("readTurn", null);
  app.decorate("sockets", edge.sockets);
  app.addHook("preClose", edge.sockets.close);

  tracing(app, edge);
  takeOddRequests(app.server as Server, edge);
  app.addHook("onRequest", inOrder(arrivalRules(edge)));
  // After admission, so that a caller without a key learns nothing else.
  app.addHook("preParsing", refuseOverlong);
  errorEnvelope(app, edge);
  const unknown = unknownRoutes(app);
  app.setNotFoundHandler(unknown.refuse);
  healthRoutes(app, edge);
  docsRoutes(app);
  discoveryRoutes(app, edge);
  await app.register(
    async (v1) => {
      v1.addHook("onRequest", inOrder(admissionRules(byKey(edge), unknown)));
      // The rules answer first. This gives the prefix a not-found route of its own, and with it the hook.
      v1.setNotFoundHandler(unknown.refuse);
      v1Routes(v1, edge);
    },
    { prefix: "/v1" },
  );
  if (edge.settings.console) {
    await app.register((scope) => consoleRoutes(scope, edge, unknown), { prefix: "/console" });
  }
  await app.ready();
  return app;
}

/** The first rules of every request. A page may read refusals, so the rule of CORS comes before those that refuse. */
function arrivalRules(edge: Edge): Rule[] {
  return [requestLog(edge), ...cors(edge), ...protocolRules];
}

function createEdge(deps: GatewayDeps): Edge {
  const { settings, clock } = deps;
  const events = createEdgeEvents(deps);
  const bodies = new BodyReader({
    clock,
    maxBytesInFlight: settings.maxBytesInFlight ?? defaultMaxBytesInFlight,
    payers: deps.payers,
    onHeld: events.bytesInFlight,
  });
  const { isPaying } = deps.payers;
  const readers = createReaderWatch(clock);
  const sharing = { clock, payers: deps.payers, readers };
  const downloads = createDownloads({ bounds: settings.downloads ?? downloadShare, ...sharing });
  const repeated = createDownloads({ bounds: repeatedShare, ...sharing });
  const parts = {
    ...deps,
    events,
    bodies,
    downloads,
    repeated,
    readers,
    silences: createSilences(clock),
    reads: createFairShare(readShare, { clock, isPaying }),
    reader: createJsonReader(deps.workshop),
    urls: createPublicUrls(settings.publicUrl),
  };
  return { ...parts, sockets: openResponseSockets(parts) };
}

const nodeOptions: ServerOptions = {
  maxHeaderSize: maxHeaderBytes,
  headersTimeout: headersTimeoutMs,
  requestTimeout: requestTimeoutMs,
  keepAliveTimeout: keepAliveTimeoutMs,
  keepAlive: true,
  keepAliveInitialDelay: tcpProbeAfterMs,
  connectionsCheckingInterval: connectionsCheckMs,
  // Node would answer in its own form. The rule is in plugins/protocol.ts.
  requireHostHeader: false,
  noDelay: true,
};

/** Only a WebSocket for responses becomes one. To Node any other wish to change the protocol is a plain request. */
const upgradeOptions: ServerOptions = {
  shouldUpgradeCallback: (request) =>
    isUpgrade(request.headers.upgrade) && isForResponses(request, routedUrl(request)),
};

function serverOptions(edge: Edge): FastifyServerOptions {
  const hasSockets = edge.settings.webSockets !== false;
  const options = hasSockets ? { ...nodeOptions, ...upgradeOptions } : nodeOptions;
  return {
    logger: false,
    serverFactory(handler) {
      const server = (edge.createServer ?? createServer)(options, handler);
      if (hasSockets) takeUpgrades(server);
      boundPipelining(server);
      // Over TLS requests come on a second socket.
      for (const came of ["connection", "secureConnection"]) server.on(came, edge.readers.watch);
      boundChunks(server, (socket) => refuseChunks(edge, socket));
      const { trustProxy, connections = connectionLimits } = edge.settings;
      const isSlow = (request: IncomingMessage) => edge.bodies.isSlow(request);
      boundConnections(server, { ...connections, isShared: trustedAddresses(trustProxy), isSlow });
      return server;
    },
    // Each route has its own limit for bodies, in body.ts.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    // HEAD on every GET. Where that would open a stream (files, events), the route answers HEAD itself.
    exposeHeadRoutes: true,
    schemaController: schemaless,
    // While it closes, it still serves requests that arrive.
    return503OnClosing: false,
    forceCloseConnections: "idle",
    trustProxy: edge.settings.trustProxy ?? false,
    routerOptions: { maxParamLength },
    rewriteUrl: routedUrl,
    genReqId: () => edge.ids.make("req"),
    clientErrorHandler: (error, socket) => refuseConnection(edge, error, socket as Socket),
  };
}

/** Routes for balancers and probes, without a key. Only the operations port of the process has metrics. */
function healthRoutes(app: FastifyInstance, edge: Edge): void {
  for (const path of ["/healthz", "/livez"]) {
    app.get(path, async (_request, reply) => reply.type("text/plain; charset=utf-8").send("ok\n"));
  }
  // While draining this answers 503, but requests are still served. Their senders need time to notice.
  app.get("/readyz", async (_request, reply) => {
    const reason = edge.notReady();
    return reply
      .code(reason === undefined ? 200 : 503)
      .type("text/plain; charset=utf-8")
      .send(`${reason ?? "ready"}\n`);
  });
}
