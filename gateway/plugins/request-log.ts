import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { errorRow, type RefusalError } from "#kit/base/errors.ts";
import { causesOf } from "#kit/telemetry/causes.ts";
import type { Edge } from "../context.ts";
import type { EndedRequest } from "../events.ts";
import { clientRequestIdPattern } from "../limits.ts";
import { endedStatus, noteBroken, whenClosed } from "../request.ts";

/** Status in the log and the metrics for an answer that its caller did not wait for. */
const callerLeft = 499;

/** `x-request-id` on every answer, beside the caller's own id, and one line in the log for every request, when it is over. */
export function requestLog(app: FastifyInstance, edge: Edge): void {
  app.addHook("onRequest", (request, reply, done) => {
    const beganAt = performance.now();
    edge.events.requestBegan();
    reply.header("x-request-id", request.id);
    const clientRequestId = clientRequestIdOf(request.headers);
    if (clientRequestId !== undefined) reply.header("x-client-request-id", clientRequestId);
    whenClosed(reply, () => {
      edge.events.requestEnded({
        requestId: request.id,
        ...(clientRequestId === undefined ? {} : { clientRequestId }),
        method: request.method,
        route: (!request.is404 && request.routeOptions.url) || "unknown",
        status: endedStatus(reply) ?? callerLeft,
        durationMs: Math.round((performance.now() - beganAt) * 100) / 100,
        accountId: request.caller?.principal.accountId,
        ...(request.refusal ? refusalFields(request.refusal) : {}),
      });
    });
    done();
  });
  // The framework silently cuts an answer whose source breaks.
  app.addHook("onSend", (_request, reply, payload, done) => {
    if (payload instanceof Readable) {
      payload.once("error", (error) => void noteBroken(edge, error, reply));
    }
    done(null, payload);
  });
}

function refusalFields(refusal: RefusalError): Pick<EndedRequest, "reason" | "cause"> {
  const cause = causesOf(refusal);
  return { reason: errorRow(refusal.reason).code, ...(cause === undefined ? {} : { cause }) };
}

/**
 * The caller's own id for its request. Undefined where it sends none, or an invalid one. It is never our id: callers may use theirs
 * twice.
 */
function clientRequestIdOf(headers: IncomingHttpHeaders): string | undefined {
  const sent = [headers["x-request-id"], headers["x-client-request-id"]];
  return sent.find((id): id is string => typeof id === "string" && clientRequestIdPattern.test(id));
}
