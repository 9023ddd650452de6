import { METHODS } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { noTelemetry, type Span } from "#kit/telemetry/port.ts";
import type { Edge } from "../context.ts";
import { trustedAddresses } from "../trusted.ts";

/**
 * Begins a trace with every request, or goes on with the one of a trusted proxy: anybody else's word would let callers
 * choose what is recorded, and mix their traces into ours. Nothing that the caller named is told, but for the method.
 */
export function tracing(app: FastifyInstance, edge: Edge): void {
  const { telemetry = noTelemetry } = edge;
  if (!telemetry.isOn) return;
  const isTrusted = trustedAddresses(edge.settings.trustProxy);
  app.addHook("onRequest", (request, reply, done) => {
    // Asked every few seconds by whoever runs us.
    if (!request.url.startsWith("/v1")) return done();
    const headers = isTrusted(request.socket.remoteAddress) ? contextOf(request) : undefined;
    const span = telemetry.start(specOf(request), headers);
    const { raw } = reply;
    if (span.isRecording) {
      raw.once("close", () => end(span, raw.writableFinished ? raw.statusCode : undefined));
    }
    telemetry.run(span, done);
  });
}

function specOf(request: FastifyRequest) {
  const method = METHODS.includes(request.method) ? request.method : "_OTHER";
  const route = request.is404 ? undefined : request.routeOptions.url;
  return {
    family: "http.server",
    name: route === undefined ? method : `${method} ${route}`,
    attributes: {
      "http.request.method": method,
      "http.route": route,
      "url.scheme": request.protocol === "https" ? "https" : "http",
    },
    root: true,
  } as const;
}

function contextOf({ headers }: FastifyRequest) {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string") return undefined;
  return { traceparent, ...(typeof tracestate === "string" ? { tracestate } : {}) };
}

/** `status` is undefined where the caller left before it was answered. */
function end(span: Span, status: number | undefined): void {
  if (status === undefined) span.fail("caller_left");
  else span.set({ "http.response.status_code": status });
  if (status !== undefined && status >= 500) span.fail(String(status));
  span.end();
}
