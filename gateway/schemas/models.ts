import { arrayOf, errors, json, object, type RouteSchema, ref, string } from "./common.ts";

export const listModelsSchema: RouteSchema = {
  operationId: "listModels",
  summary: "List models",
  description:
    "The active models that the key may use: the source of truth for ids, limits, options and prices.",
  tags: ["Catalog"],
  response: {
    200: json(
      "The models, in the catalog's order.",
      object({ object: string("", { enum: ["list"] }), data: arrayOf(ref("Model"), "Models.") }, [
        "object",
        "data",
      ]),
    ),
    ...errors(),
  },
};

export const getModelSchema: RouteSchema = {
  operationId: "getModel",
  summary: "Get a model",
  description: "One active model that the key may use.",
  tags: ["Catalog"],
  params: object({ model: string("Model id.") }, ["model"]),
  response: { 200: json("The model.", ref("Model")), ...errors(400) },
};
