import { createServer, type ServerOptions } from "node:http";
import type { Socket } from "node:net";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { boundConnections, boundPipelining } from "#kit/connection-bounds.ts";
import { createFairShare } from "#kit/fair-share.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { schemaless } from "#kit/schemaless.ts";
import { createBodyReader } from "./body.ts";
import type { Edge, GatewayDeps } from "./context.ts";
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
  requestTimeoutMs,
} from "./limits.ts";
import { authentication } from "./plugins/authentication.ts";
import { cors } from "./plugins/cors.ts";
import { docsRoutes } from "./plugins/docs.ts";
import { errorEnvelope } from "./plugins/errors.ts";
import { healthRoutes } from "./plugins/health.ts";
import { protocolRules, refuseConnection, routedUrl } from "./plugins/protocol.ts";
import { requestIdOf, requestLog } from "./plugins/request-log.ts";
import { tracing } from "./plugins/tracing.ts";
import { type UnknownRoutes, unknownRoutes } from "./plugins/unknown-routes.ts";
import { createPublicUrls } from "./public-url.ts";
import { v1Routes } from "./routes/v1/index.ts";
import { trustedAddresses } from "./trusted.ts";

/**
 * Builds the public edge; it never listens by itself (`app.listen`). Rejects where a setting makes no sense. Closing
 * it lets open requests end and closes idle connections.
 */
export async function buildGateway(deps: GatewayDeps): Promise<FastifyInstance> {
  const edge = createEdge(deps);
  const app = Fastify(serverOptions(edge));
  // Bodies go to the services as bytes: the framework neither parses them nor asks for a content type.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.decorateRequest("caller", null);
  app.decorateRequest("refusal", null);
  app.decorateRequest("awaitsContinue", false);

  tracing(app, edge);
  requestLog(app, edge);
  // Before anything that refuses: a page may read refusals too.
  cors(app, edge);
  protocolRules(app, edge);
  errorEnvelope(app, edge);
  const unknown = unknownRoutes(app);
  app.setNotFoundHandler((request) => {
    throw unknown.refusalOf(request);
  });
  healthRoutes(app, edge);
  docsRoutes(app);
  await app.register(
    async (v1) => {
      authentication(v1, edge);
      refuseUnknown(v1, unknown);
      v1Routes(v1, edge);
    },
    { prefix: "/v1" },
  );
  app.addHook("onClose", () => edge.reader[Symbol.asyncDispose]());
  await app.ready();
  return app;
}

function createEdge(deps: GatewayDeps): Edge {
  const { settings, clock } = deps;
  const events = createEdgeEvents(deps);
  const bodies = createBodyReader({
    clock,
    maxBytesInFlight: settings.maxBytesInFlight ?? defaultMaxBytesInFlight,
    payers: deps.payers,
    onHeld: events.bytesInFlight,
  });
  const { isPaying } = deps.payers;
  const downloads = createFairShare(downloadShare, { clock, isPaying });
  return {
    ...deps,
    events,
    bodies,
    downloads,
    reader: createJsonReader(),
    urls: createPublicUrls(settings.publicUrl),
  };
}

const nodeOptions: ServerOptions = {
  maxHeaderSize: maxHeaderBytes,
  headersTimeout: headersTimeoutMs,
  requestTimeout: requestTimeoutMs,
  keepAliveTimeout: keepAliveTimeoutMs,
  connectionsCheckingInterval: connectionsCheckMs,
  // Node would answer in its own words; the rule is in plugins/protocol.ts.
  requireHostHeader: false,
  noDelay: true,
};

function serverOptions(edge: Edge): FastifyServerOptions {
  return {
    logger: false,
    serverFactory(handler) {
      const server = (edge.createServer ?? createServer)(nodeOptions, handler);
      boundPipelining(server);
      const isShared = trustedAddresses(edge.settings.trustProxy);
      boundConnections(server, { ...connectionLimits, isShared });
      return server;
    },
    // The bodies' own limits are per route, in body.ts.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    // HEAD on every GET. Where that would open a stream (files, events) the route answers HEAD itself.
    exposeHeadRoutes: true,
    schemaController: schemaless,
    // While it closes it still serves what arrives.
    return503OnClosing: false,
    forceCloseConnections: "idle",
    trustProxy: edge.settings.trustProxy ?? false,
    routerOptions: { maxParamLength },
    rewriteUrl: (request) => routedUrl(request.url ?? "/"),
    genReqId: (request) => requestIdOf(request.headers["x-request-id"], () => edge.ids.make("req")),
    clientErrorHandler: (error, socket) => refuseConnection(edge, error, socket as Socket),
  };
}

/** 404 and 405 under `/v1`, after admission and before anything is made of the body. */
function refuseUnknown(v1: FastifyInstance, unknown: UnknownRoutes): void {
  v1.addHook("onRequest", (request, _reply, done) => {
    const params = Object.values(request.params as Record<string, string>);
    // The router takes `/models/` for `/models/:model` without a model.
    const known = !request.is404 && !params.includes("");
    done(known ? undefined : unknown.refusalOf(request));
  });
  // The hook answers first; this gives the prefix its own not-found route, and with it the hooks.
  v1.setNotFoundHandler((request) => {
    throw unknown.refusalOf(request);
  });
}
