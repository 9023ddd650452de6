import type { FastifyInstance, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { noteValidKey } from "#kit/edge/connection-bounds.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Admitted, Deferral, Edge } from "../context.ts";
import { idempotencyKeyOf, isRepeated } from "../request.ts";

/** The methods that a suspended account may still use. */
const readingMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 *
 * Admits callers before any other step, even on unknown paths, so that a caller without a key learns nothing. `admit` returns the
 * caller of a request, and refuses an unknown one.
 */
export function authentication(app: FastifyInstance, { admit }: { admit: Admit }): void {
  app.addHook("onRequest", async (request, reply) => {
    const { scope = Scope.UNSPECIFIED, idempotent = false } = request.routeOptions.config;
    const deferral = deferralOf(idempotent, idempotencyKeyOf(request) !== undefined);
    const admitted = await admit(request, scope, deferral);
    request.caller = admitted;
    noteValidKey(request.raw.socket, admitted.principal.accountId);
    reply.headers(admitted.headers);
    if (admitted.accountSuspended && !readingMethods.has(request.method)) {
      refuse(ErrorReason.ACCOUNT_SUSPENDED);
    }
    if (isRepeated(request.raw, "content-type")) {
      refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE, { message: "Send the header Content-Type once." });
    }
    if (isRepeated(request.raw, "idempotency-key")) {
      refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, {
        param: "Idempotency-Key",
        message: "Send the header Idempotency-Key at most once.",
      });
    }
  });
}

/** Returns the caller of a request. */
export type Admit = (
  request: FastifyRequest,
  scope: Scope,
  deferral: Deferral,
) => Admitted | Promise<Admitted>;

/** By the Authorization header. */
export function byKey({ admission }: Pick<Edge, "admission">): Admit {
  return (request, scope, deferral) => {
    if (isRepeated(request.raw, "authorization")) refuse(ErrorReason.INVALID_API_KEY);
    return admission.admit(request.headers.authorization, scope, deferral);
  };
}

/** A service that looks up idempotency keys reads the body first. So it can refuse the scope after checking the syntax. */
function deferralOf(idempotent: boolean, hasIdempotencyKey: boolean): Deferral {
  if (!idempotent) return "nothing";
  return hasIdempotencyKey ? "scope and rate" : "scope";
}
