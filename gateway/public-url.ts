// Makes the URLs of answers, by the operator's setting or by the host that the request names.

import type { FastifyRequest } from "fastify";
import { malformed } from "./errors.ts";

/** Makes the URLs in answers, at the moment of the answer. */
export interface PublicUrls {
  /** `{base}/v1`, without a trailing slash. Refuses a request whose Host makes no URL. */
  base(request: FastifyRequest): string;
  /** The same for programs that get the URL elsewhere, by a webhook. Below the console they would have no cookie. */
  api(request: FastifyRequest): string;
}

const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/;

/** `publicUrl`: the operator's setting, with or without `/v1`. Otherwise the request's own host. Throws where it is no http(s) URL. */
export function createPublicUrls(publicUrl: string | undefined): PublicUrls {
  const fixed = publicUrl === undefined ? undefined : withVersion(publicUrl);
  const api = (request: FastifyRequest) => fixed ?? `${originOf(request)}/v1`;
  return { base: api, api };
}

/** Is it only a host and an optional port, so that it makes a URL? */
export function isHost(value: string): boolean {
  return hostPattern.test(value) && URL.canParse(`http://${value}`);
}

function withVersion(publicUrl: string): string {
  const url = new URL(publicUrl);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError("the public URL must begin with http:// or https://");
  }
  if (url.search || url.hash || url.username || url.password) {
    throw new TypeError("the public URL must have no query, fragment or credentials");
  }
  const base = `${url.origin}${url.pathname}`.replace(/\/+$/, "");
  return base.endsWith("/v1") ? base : `${base}/v1`;
}

/**
 * The origin under which the request names this gateway, or a trusted proxy. `unnamed` is the host where the request names none.
 * Refuses a Host that makes no URL.
 */
export function originOf(request: FastifyRequest, unnamed = localHost(request)): string {
  const protocol = request.protocol === "https" ? "https" : "http";
  const host = request.host || unnamed;
  if (!isHost(host)) throw malformed("The Host header is not valid.");
  return `${protocol}://${host}`;
}

// HTTP/1.0 needs no Host header.
function localHost(request: FastifyRequest): string {
  const { localAddress = "127.0.0.1", localPort = 80 } = request.raw.socket;
  return `${localAddress.includes(":") ? `[${localAddress}]` : localAddress}:${localPort}`;
}
