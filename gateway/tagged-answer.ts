// Answers with a document and its ETag, so that a caller who has it already gets no body.

import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { JsonObject } from "#kit/base/json.ts";
import { matchesNone } from "./files.ts";

/** Sends a document that changes rarely, with its ETag. A caller that has it already gets 304 (RFC 9110, 15.4.5). */
export function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  document: JsonObject,
): FastifyReply {
  const body = JSON.stringify(document);
  const etag = `"${createHash("sha256").update(body).digest("base64url")}"`;
  // Each key may see another document, and a cache must ask again every time.
  reply.headers({ etag, "cache-control": "private, no-cache" });
  if (matchesNone(request.headers["if-none-match"], etag)) return reply.code(304).send();
  return reply.type("application/json; charset=utf-8").send(body);
}
