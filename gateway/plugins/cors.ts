// Lets pages of other origins call the API, where the operator allows theirs.

import type { FastifyRequest } from "fastify";
import type { Edge } from "../context.ts";
import type { Rule } from "./rules.ts";

/** Seconds for which a browser may keep a preflight's answer: the most that Chromium keeps. */
const preflightMaxAgeSeconds = 7_200;
/** All methods of all paths. The request itself shows which path takes which. */
const methods = "GET, HEAD, POST, PATCH, DELETE";

/** Headers of answers that a page may read, beside those that it always may (`Content-Type`, `Content-Length`, …). */
export const exposedHeaders = [
  "accept-ranges",
  "allow",
  "content-disposition",
  "content-range",
  "deprecation",
  "etag",
  "idempotency-replayed",
  "link",
  "preference-applied",
  "request-id",
  "retry-after",
  "sunset",
  "www-authenticate",
  "x-client-request-id",
  "x-genmesh-cost-usd-micros",
  "x-genmesh-ignored-parameters",
  "x-genmesh-max-tokens",
  "x-next-page",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "x-request-id",
  "x-should-retry",
] as const;

/** Headers of requests that a page may send: those that the API reads, and those that HTTP clients and tracing add by themselves. */
const requestHeaders: ReadonlySet<string> = new Set([
  "accept",
  "accept-language",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "anthropic-version",
  "authorization",
  "baggage",
  "cache-control",
  "content-language",
  "content-type",
  "idempotency-key",
  "if-none-match",
  "if-range",
  "pragma",
  "prefer",
  "range",
  "traceparent",
  "tracestate",
  "user-agent",
  "x-api-key",
  "x-client-request-id",
  "x-request-id",
  "x-requested-with",
]);
/**
 * Headers in which the official SDKs describe themselves (`x-stainless-os`, …; `openai-project`, …). Their names change from version to
 * version, and no program here or on the way reads them. Any other name is refused, because proxies believe some headers
 * (`x-forwarded-for`).
 */
const sdkHeaders = /^(?:x-stainless|openai)-[a-z0-9-]{1,64}$/;

/**
 * Lets pages of the operator's `corsOrigins` call the API. Preflights are answered before admission, because browsers send them without
 * the key. The page can read every other answer, even a refusal. Credentials (cookies) are never allowed: the key is in a header that
 * the page sets itself. Without origins nothing is added.
 */
export function cors({ settings }: Edge): Rule[] {
  const origins = new Set(settings.corsOrigins);
  if (origins.size === 0) return [];
  const isForAll = origins.has("*");
  const allow: Rule = (request, reply) => {
    // The console is only for its own pages.
    if (request.url.startsWith("/console")) return undefined;
    // Set even without an origin: a cache must not give that answer to a page.
    reply.header("vary", "Origin");
    const { origin } = request.headers;
    if (!isForAll && (origin === undefined || !origins.has(origin))) return undefined;
    reply.header("access-control-allow-origin", isForAll ? "*" : origin);
    if (!isPreflight(request)) {
      reply.header("access-control-expose-headers", exposedHeaders.join(", "));
      return undefined;
    }
    const wanted = allowedOf(request.headers["access-control-request-headers"]);
    reply
      .code(204)
      .headers({
        vary: "Origin, Access-Control-Request-Headers",
        "access-control-allow-methods": methods,
        ...(wanted === "" ? {} : { "access-control-allow-headers": wanted }),
        "access-control-max-age": String(preflightMaxAgeSeconds),
      })
      .send();
    return true;
  };
  return [allow];
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return (
    method === "OPTIONS" &&
    headers.origin !== undefined &&
    headers["access-control-request-method"] !== undefined
  );
}

/** Those of the requested names that a page may send. */
function allowedOf(wanted: string | undefined): string {
  const names = (wanted ?? "").split(",").map((name) => name.trim().toLowerCase());
  const allowed = names.filter((name) => requestHeaders.has(name) || sdkHeaders.test(name));
  return [...new Set(allowed)].join(", ");
}
