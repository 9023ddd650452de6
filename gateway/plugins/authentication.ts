import type { FastifyInstance } from "fastify";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Deferral, Edge } from "../context.ts";
import { idempotencyKeyOf, isRepeated } from "../request.ts";

/** Admits callers before anything else happens, also on paths that do not exist: nobody learns more without a key. */
export function authentication(app: FastifyInstance, edge: Edge): void {
  app.addHook("onRequest", async (request, reply) => {
    if (isRepeated(request.raw, "authorization")) refuse(ErrorReason.INVALID_API_KEY);
    const { scope = Scope.UNSPECIFIED, idempotent = false } = request.routeOptions.config;
    const admitted = await edge.admission.admit(
      request.headers.authorization,
      scope,
      deferralOf(idempotent, idempotencyKeyOf(request) !== undefined),
    );
    request.caller = admitted;
    reply.headers(admitted.headers);
    if (isRepeated(request.raw, "content-type")) {
      refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE, { message: "A body has one Content-Type." });
    }
    if (isRepeated(request.raw, "idempotency-key")) {
      refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, {
        param: "Idempotency-Key",
        message: "A request has one Idempotency-Key.",
      });
    }
  });
}

/** A service that looks idempotency keys up reads the body first, so that it can refuse the scope behind its syntax. */
function deferralOf(idempotent: boolean, hasIdempotencyKey: boolean): Deferral {
  if (!idempotent) return "nothing";
  return hasIdempotencyKey ? "scope and rate" : "scope";
}
