// Gives each request an id, and logs and counts it when its answer is over.

import { errorRow, type RefusalError } from "#kit/base/errors.ts";
import { causesOf } from "#kit/telemetry/causes.ts";
import type { Edge } from "../context.ts";
import type { EndedRequest } from "../events.ts";
import { clientRequestIdPattern } from "../limits.ts";
import { isOfMessages } from "../messages-errors.ts";
import { endedStatus, whenClosed } from "../request.ts";
import type { Rule } from "./rules.ts";

/** Status in the log and the metrics for an answer that its caller did not wait for. */
const callerLeft = 499;

/** `x-request-id` on every answer, beside the caller's own id, and one line in the log for every request, when it is over. */
export function requestLog(edge: Edge): Rule {
  return (request, reply) => {
    const beganAt = performance.now();
    edge.events.requestBegan();
    reply.header("x-request-id", request.id);
    // Most requests are of other paths.
    if (request.url.startsWith("/v1/m") && isOfMessages(request))
      reply.header("request-id", request.id);
    // The caller's own id for its request. It is never our id: callers may use theirs twice.
    const { headers } = request;
    const clientRequestId =
      validId(headers["x-request-id"]) ?? validId(headers["x-client-request-id"]);
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
  };
}

function refusalFields(refusal: RefusalError): Pick<EndedRequest, "reason" | "cause"> {
  const cause = causesOf(refusal);
  return { reason: errorRow(refusal.reason).code, ...(cause === undefined ? {} : { cause }) };
}

function validId(id: string | string[] | undefined): string | undefined {
  return typeof id === "string" && clientRequestIdPattern.test(id) ? id : undefined;
}
