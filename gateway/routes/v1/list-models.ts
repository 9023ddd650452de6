import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { toCatalogEntry } from "../../models.ts";
import { linkToDescription } from "../../plugins/discovery.ts";
import { callerOf } from "../../request.ts";
import {
  arrayOf,
  errors,
  json,
  notModified,
  object,
  type RouteSchema,
  ref,
  string,
  tagHeader,
} from "../../schemas.ts";
import { sendTagged } from "../../tagged-answer.ts";

const listModelsSchema: RouteSchema = {
  operationId: "listModels",
  summary: "List models",
  description:
    "The active models that the key may use: the source of truth for ids, limits, options and prices.",
  tags: ["Catalog"],
  headers: tagHeader,
  response: {
    200: json(
      "The models, in the catalog's order.",
      object({ object: string("", { enum: ["list"] }), data: arrayOf(ref("Model"), "Models.") }, [
        "object",
        "data",
      ]),
    ),
    304: notModified,
    ...errors(),
  },
};

/** `GET /models`: the active models that the key may use. */
export function listModels(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/models",
    config: { scope: Scope.MODELS },
    schema: listModelsSchema,
    handler: async (request, reply) => {
      linkToDescription(edge, request, reply);
      const { snapshot, activeModels } = edge.catalog.current();
      const allowed = callerOf(request).admission.allowedModels ?? [];
      const data = activeModels
        .filter((model) => allowed.length === 0 || allowed.includes(model.id))
        .map((model) => toCatalogEntry(model, snapshot));
      return sendTagged(request, reply, { object: "list", data });
    },
  });
}
