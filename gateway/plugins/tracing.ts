// Makes a span of each request, where the operator sends traces. Otherwise it does nothing.

import { createHash } from "node:crypto";
import { METHODS } from "node:http";
import { context, propagation, ROOT_CONTEXT, type Span, trace } from "@opentelemetry/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Attributes, beginTrace, failSpan } from "#kit/telemetry/spans.ts";
import type { Edge } from "../context.ts";
import { endedStatus } from "../request.ts";
import { trustedAddresses } from "../trusted.ts";

/**
 * Begins a trace with every request, or continues the one of a trusted proxy. With the headers of any other client, callers could
 * choose what is recorded, and mix their traces into ours. Of everything that the caller named, only the method is recorded.
 */
export function tracing(app: FastifyInstance, edge: Edge): void {
  if (!edge.settings.traces) return;
  const hashesAccounts = edge.settings.traces === "hash";
  const isTrusted = trustedAddresses(edge.settings.trustProxy);
  app.addHook("onRequest", (request, reply, done) => {
    // The platform's probes call every few seconds.
    if (!/^\/(?:v1|console\/api)/.test(request.url)) return done();
    const parent = isTrusted(request.socket.remoteAddress)
      ? propagation.extract(ROOT_CONTEXT, request.headers)
      : ROOT_CONTEXT;
    const span = beginTrace(specOf(request), parent);
    if (span.isRecording()) {
      reply.raw.once("close", () => {
        span.setAttributes(callerOfSpan(request, hashesAccounts));
        end(span, endedStatus(reply));
      });
    }
    context.with(trace.setSpan(ROOT_CONTEXT, span), done);
  });
}

/** The account may be hashed: a trace leaves the operator's own stores. */
function callerOfSpan({ caller }: FastifyRequest, hashesAccounts: boolean): Attributes {
  const id = caller?.principal.accountId;
  if (!id) return {};
  return { "genmesh.account.id": hashesAccounts ? hashOf(id) : id };
}

/** 16 hexadecimal characters: ids are random, so as many tell them apart. */
function hashOf(accountId: string): string {
  return createHash("sha256").update(accountId).digest("hex").slice(0, 16);
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
      "genmesh.request.id": request.id,
    },
  } as const;
}

/** `status` is undefined where the caller left before its answer. */
function end(span: Span, status: number | undefined): void {
  if (status === undefined) failSpan(span, "caller_left");
  else span.setAttributes({ "http.response.status_code": status } satisfies Attributes);
  if (status !== undefined && status >= 500) failSpan(span, String(status));
  span.end();
}
