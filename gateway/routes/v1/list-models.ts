// The operation that lists the models that the key may use. `models.ts` makes the entries.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { toCatalogEntry } from "../../models.ts";
import { linkToDescription } from "../../plugins/discovery.ts";
import { callerOf } from "../../request.ts";
import {
  arrayOf,
  boolean,
  json,
  notModified,
  object,
  type RouteSchema,
  ref,
  string,
  stringOrNull,
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
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(ref("Model"), "Models."),
          has_more: boolean("False: all models are on one page.", { const: false }),
          first_id: stringOrNull("The id of the first model, for Anthropic's clients."),
          last_id: stringOrNull("The id of the last model, for Anthropic's clients."),
        },
        ["object", "data", "has_more", "first_id", "last_id"],
      ),
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
      const pages = {
        has_more: false,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
      };
      return sendTagged(request, reply, { object: "list", data, ...pages });
    },
  });
}
