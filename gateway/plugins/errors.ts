import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, RefusalError } from "#kit/errors.ts";
import type { Edge } from "../context.ts";
import { CallerLeftError, refusalOf, toHttpError } from "../errors.ts";
import { answerAndLinger, mustLinger } from "../linger.ts";

/** Every error leaves in the contract's envelope; what is not a refusal is a fault of ours, logged and not told. */
export function errorEnvelope(app: FastifyInstance, edge: Edge): void {
  app.setErrorHandler((error, request, reply) => sendError(edge, error, request, reply));
}

function sendError(
  edge: Edge,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  // Whatever it was, nobody hears it any more.
  if (reply.raw.destroyed || request.raw.socket.destroyed || error instanceof CallerLeftError) {
    reply.hijack();
    reply.raw.destroy();
    return reply;
  }
  const known = refusalOf(error);
  if (!known) edge.events.faulted(error, request.id, request.routeOptions.url ?? "");
  const refusal = known ?? new RefusalError(ErrorReason.INTERNAL_ERROR);
  const { status, headers, body } = toHttpError(refusal);
  // A fault among the refusals: an internal call was made wrongly.
  if (known && status === 500)
    edge.events.faulted(known, request.id, request.routeOptions.url ?? "");
  const bytes = Buffer.from(JSON.stringify(body));
  for (const name of entityHeaders) reply.removeHeader(name);
  reply.headers({ ...headers, "content-type": "application/json; charset=utf-8" });
  if (!mustLinger(request)) return reply.code(status).send(bytes);
  answerAndLinger(edge.clock, request, reply, { status, headers, body: bytes });
  return reply;
}

/** Set for the answer that then failed; they describe a body that is not sent. */
const entityHeaders = [
  "content-type",
  "content-length",
  "content-disposition",
  "content-range",
  "content-security-policy",
  "etag",
  "cache-control",
  "idempotency-replayed",
];
