// Protects the console's pages and routes against other sites: security headers on every answer, and refusal of requests that a page of
// another site sent, or that came without TLS.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { originOf } from "../public-url.ts";
import { isRepeated } from "../request.ts";
import { isHttps } from "./cookies.ts";

/** The Content-Security-Policy of the console's pages: they load only the console's own files, run no inline code, and no page frames them. */
export const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "font-src 'self'",
  "img-src 'self' blob:",
  "media-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers of every answer below `/console`, unless its route sets others. */
const headers: Readonly<Record<string, string>> = {
  "content-security-policy": contentPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** On every answer, even on a stream that takes the connection over. A route's own headers come first. */
export function secureHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", (_request, reply, done) => {
    for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
    done();
  });
  // An error removes the headers that its route had set.
  app.addHook("onSend", (_request, reply, payload, done) => {
    for (const [name, value] of Object.entries(headers)) {
      if (!reply.hasHeader(name)) reply.header(name, value);
    }
    done(null, payload);
  });
}

/** No part of a session stays in a browser's cache, not even a file. The next person at that machine could read it. */
export function neverStored(app: FastifyInstance): void {
  app.addHook("onSend", (_request, reply, payload, done) => {
    reply.header("cache-control", "no-store");
    done(null, payload);
  });
}

/** Admits only requests of the console's own pages. */
export function sameOriginOnly(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    refuseInsecure(request);
    if (!isReading(request)) {
      refuseCrossSite(request);
      refuseForms(request);
    }
    done();
  });
}

/** The origin under which the browser sees this gateway. Refuses plain HTTP with INSECURE_CONNECTION, except on the loopback. */
export function consoleOrigin(request: FastifyRequest): string {
  refuseInsecure(request);
  return ownOrigin(request);
}

function refuseInsecure(request: FastifyRequest): void {
  if (isHttps(request) || isLoopback(request)) return;
  refuse(ErrorReason.INSECURE_CONNECTION);
}

/**
 * Checked by the name in the browser's address line, not by the connection's end. A port of a container or a tunnel ends elsewhere. A
 * name of another domain that leads to the loopback does not count as the loopback.
 */
function isLoopback(request: FastifyRequest): boolean {
  const { hostname } = new URL(ownOrigin(request));
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(hostname)
  );
}

function ownOrigin(request: FastifyRequest): string {
  return new URL(originOf(request, "invalid")).origin;
}

function isReading({ method }: FastifyRequest): boolean {
  return method === "GET" || method === "HEAD";
}

/**
 * A browser states where a request comes from, and no page can change that. `Origin: null` comes from pages that hide it. Where the
 * browser calls them of the same origin, they are.
 */
function refuseCrossSite(request: FastifyRequest): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  const isRepeatedHeader = isRepeated(request.raw, "origin") || isRepeated(request.raw, "cookie");
  const isOwn = origin === ownOrigin(request);
  const hides = origin === undefined || origin === "null";
  const isAllowed = site === undefined ? isOwn : site === "same-origin" && (isOwn || hides);
  if (!isAllowed || isRepeatedHeader) refuse(ErrorReason.CROSS_SITE_REQUEST);
}

/** A form of another site can send no JSON. Only uploads are forms here. */
function refuseForms({ headers: sent, routeOptions }: FastifyRequest): void {
  const type = sent["content-type"];
  if (type === undefined) return;
  const essence = type.split(";", 1)[0]?.trim().toLowerCase();
  const isTaken = routeOptions.config.takesForm
    ? essence === "multipart/form-data"
    : essence === "application/json";
  if (!isTaken) refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE);
}

/** An answer that is an HTML page of the gateway, outside the app. */
export function sendPage(reply: FastifyReply, status: number, title: string, body: string) {
  const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>${escaped(title)}</title>${body}
</html>
`;
  return reply.code(status).type("text/html; charset=utf-8").send(page);
}

/** Escapes text for a page. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}
