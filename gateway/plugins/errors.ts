// Sends each error of a route or rule in the form of the API, and logs those that are our own faults. `errors.ts` beside this
// folder makes the form.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, errorRow, RefusalError } from "#kit/base/errors.ts";
import type { Edge } from "../context.ts";
import { createLinger, type Linger, mustLinger } from "../drain-refused-body.ts";
import { CallerLeftError, refusalOf, toHttpError } from "../errors.ts";
import { isOfMessages, toMessagesError } from "../messages-errors.ts";

/**
 * Every error leaves in the envelope of the API's contract. An error that is no refusal is a fault of the gateway, which is logged and
 * not shown.
 */
export function errorEnvelope(app: FastifyInstance, edge: Edge): void {
  const linger = createLinger(edge.clock);
  app.setErrorHandler((error, request, reply) => sendError(edge, linger, error, request, reply));
}

function sendError(
  edge: Edge,
  linger: Linger,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  // The caller has left, so there is no receiver for an answer.
  if (reply.raw.destroyed || request.raw.socket.destroyed || error instanceof CallerLeftError) {
    reply.hijack();
    reply.raw.destroy();
    return reply;
  }
  const known = withTimes(refusalOf(error), request.caller?.refusal);
  if (isOurFault(known)) edge.events.faulted(error, request.id, request.routeOptions.url ?? "");
  const refusal = known ?? new RefusalError(ErrorReason.INTERNAL_ERROR);
  request.refusal = refusal;
  const { status, headers, body } = isOfMessages(request)
    ? toMessagesError(refusal, request.id)
    : toHttpError(refusal);
  const bytes = Buffer.from(JSON.stringify(body));
  for (const name of entityHeaders) reply.removeHeader(name);
  reply.headers({ ...headers, "content-type": "application/json; charset=utf-8" });
  if (!mustLinger(request)) return reply.code(status).send(bytes);
  linger(request, reply, { status, headers, body: bytes });
  return reply;
}

/** An unknown error, or the refusal of a wrong internal call. One with an incident id was logged where it happened. */
function isOurFault(refusal: RefusalError | undefined): boolean {
  if (!refusal) return true;
  return errorRow(refusal.reason).status === 500 && refusal.metadata.incident === undefined;
}

/** The edge's own deferred refusal, in place of the service's copy of it. */
function withTimes(
  refusal: RefusalError | undefined,
  deferred: RefusalError | undefined,
): RefusalError | undefined {
  return refusal && refusal.reason === deferred?.reason ? deferred : refusal;
}

/** Set for the answer that then failed. They describe a body that is not sent. */
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
