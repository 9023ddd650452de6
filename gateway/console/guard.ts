import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { originOf } from "../public-url.ts";
import { isRepeated } from "../request.ts";
import { isHttps } from "./cookies.ts";

/** What a page of the console may load and be loaded by: its own files, and nothing that stands in the page itself. */
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

/** Of every answer below `/console`, unless its route says otherwise. */
const headers: Readonly<Record<string, string>> = {
  "content-security-policy": contentPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** On every answer, also on a stream that takes the connection over; a route's own come before. */
export function secureHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", (_request, reply, done) => {
    for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
    done();
  });
  // An error takes away what its route had said.
  app.addHook("onSend", (_request, reply, payload, done) => {
    for (const [name, value] of Object.entries(headers)) {
      if (!reply.hasHeader(name)) reply.header(name, value);
    }
    done(null, payload);
  });
}

/** Nothing of a session stays in a browser's cache, also no file: the next person at that machine could read it. */
export function neverStored(app: FastifyInstance): void {
  app.addHook("onSend", (_request, reply, payload, done) => {
    reply.header("cache-control", "no-store");
    done(null, payload);
  });
}

/** Lets requests of the console's own pages in alone. */
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

/** The origin under which the browser sees this gateway. Refuses with INSECURE_CONNECTION plain HTTP but on the loopback. */
export function consoleOrigin(request: FastifyRequest): string {
  refuseInsecure(request);
  return ownOrigin(request);
}

function refuseInsecure(request: FastifyRequest): void {
  if (isHttps(request) || isLoopback(request)) return;
  refuse(ErrorReason.INSECURE_CONNECTION);
}

/**
 * By the name in the browser's address line, not by the connection's end: a port of a container or a tunnel ends elsewhere, and a
 * name of another's domain that leads to the loopback is none of the loopback.
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
 * A browser says where a request comes from, and no page can make it say otherwise. `Origin: null` stands for pages that hide
 * it; where the browser calls them of the same origin, they are.
 */
function refuseCrossSite(request: FastifyRequest): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  const isRepeatedHeader = isRepeated(request.raw, "origin") || isRepeated(request.raw, "cookie");
  const isOwn = origin === ownOrigin(request);
  const hides = origin === undefined || origin === "null";
  const isAllowed = site === undefined ? isOwn : site === "same-origin" && (isOwn || hides);
  if (!isAllowed || isRepeatedHeader) refuse(ErrorReason.CROSS_SITE_REQUEST);
}

/** A form of another site can send no JSON. Uploads alone are forms here. */
function refuseForms({ headers: sent, routeOptions }: FastifyRequest): void {
  const type = sent["content-type"];
  if (type === undefined) return;
  const essence = type.split(";", 1)[0]?.trim().toLowerCase();
  const isTaken = routeOptions.config.takesForm
    ? essence === "multipart/form-data"
    : essence === "application/json";
  if (!isTaken) refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE);
}

/** An answer that is a page of ours, outside the app. */
export function sendPage(reply: FastifyReply, status: number, title: string, body: string) {
  const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>${escaped(title)}</title>${body}
</html>
`;
  return reply.code(status).type("text/html; charset=utf-8").send(page);
}

/** Text for a page. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}
