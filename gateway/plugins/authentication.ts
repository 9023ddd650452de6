import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../context.ts";
import { idempotencyKeyOf } from "../request.ts";

/** Admits callers before anything else happens, also on paths that do not exist: nobody learns more without a key. */
export function authentication(app: FastifyInstance, edge: Edge): void {
  app.addHook("onRequest", async (request, reply) => {
    const { scope = Scope.UNSPECIFIED, idempotent = false } = request.routeOptions.config;
    const admitted = await edge.admission.admit(
      request.headers.authorization,
      scope,
      idempotent && idempotencyKeyOf(request) !== undefined,
    );
    request.caller = admitted;
    reply.headers(admitted.headers);
  });
}
