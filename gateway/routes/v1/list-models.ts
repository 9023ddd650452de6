import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { toCatalogEntry } from "../../mappers/model.ts";
import { callerOf } from "../../request.ts";
import { listModelsSchema } from "../../schemas/models.ts";

/** `GET /models`: the active models that the key may use. */
export function listModels(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/models",
    config: { scope: Scope.MODELS },
    schema: listModelsSchema,
    handler: async (request, reply) => {
      const { snapshot, activeModels } = edge.catalog.current();
      const allowed = callerOf(request).admission.allowedModels ?? [];
      const data = activeModels
        .filter((model) => allowed.length === 0 || allowed.includes(model.id))
        .map((model) => toCatalogEntry(model, snapshot));
      return reply.send({ object: "list", data });
    },
  });
}
