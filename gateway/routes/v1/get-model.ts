// The operation that shows one model of the catalog that the key may use. `models.ts` makes the entry.

import type { FastifyInstance } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { lifeHeaders, toCatalogEntry } from "../../models.ts";
import { callerOf } from "../../request.ts";
import {
  json,
  notModified,
  object,
  type RouteSchema,
  ref,
  string,
  tagHeader,
} from "../../schemas.ts";
import { sendTagged } from "../../tagged-answer.ts";

const getModelSchema: RouteSchema = {
  operationId: "getModel",
  summary: "Get a model",
  description: "One active model that the key may use.",
  tags: ["Catalog"],
  params: object({ model: string("Model id.") }, ["model"]),
  headers: tagHeader,
  response: {
    200: json("The model.", ref("Model")),
    304: notModified,
    ...errors(ErrorReason.MODEL_NOT_FOUND),
  },
};

/** `GET /models/{model}`: one active model that the key may use. */
export function getModel(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { model: string } }>({
    method: "GET",
    url: "/models/:model",
    config: { scope: Scope.MODELS },
    schema: getModelSchema,
    handler: async (request, reply) => {
      const { snapshot, activeModels } = edge.catalog.current();
      const allowed = callerOf(request).admission.allowedModels ?? [];
      const id = request.params.model;
      const model = activeModels.find((one) => one.id === id);
      if (!model || (allowed.length > 0 && !allowed.includes(id))) {
        refuse(ErrorReason.MODEL_NOT_FOUND, { param: "model", metadata: { model: id } });
      }
      reply.headers(lifeHeaders(model));
      return sendTagged(request, reply, toCatalogEntry(model, snapshot));
    },
  });
}
