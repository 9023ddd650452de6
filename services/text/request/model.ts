// Finds the model of a request among those that its key may use, and the upstreams that serve the operation.

import type { CatalogView } from "#common/agreements/catalog-client.ts";
import { requiredString } from "#common/words/body.ts";
import { maxModelIdCharacters } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Model, ModelKind, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { servesText } from "../../upstreams/protocols.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";

/** The body's model, of this kind. Refuses with MODEL_NOT_FOUND or PERMISSION_DENIED. */
export function findAllowed(
  body: JsonObject,
  kind: ModelKind,
  view: CatalogView,
  admission: Admission | undefined,
): Model {
  const id = requiredString(body, "model", { min: 1 });
  if (id.length > maxModelIdCharacters) {
    refuse(ErrorReason.MODEL_NOT_FOUND, {
      param: "model",
      metadata: { model: id.slice(0, maxModelIdCharacters) },
    });
  }
  const model = view.findModel(id, kind);
  const allowed = admission?.allowedModels ?? [];
  if (allowed.length > 0 && !allowed.includes(id)) {
    refuse(ErrorReason.PERMISSION_DENIED, {
      param: "model",
      message: "The API key may not use this model.",
    });
  }
  return model;
}

/** Upstreams that have the operation. A `chat-completions` one serves chat alone. */
export function capableUpstreams(
  operation: TextOperation,
  model: Model,
  view: CatalogView,
): readonly Upstream[] {
  const all = view.upstreamsOf(model);
  if (operation === "chat") return all;
  const capable = all.filter(({ protocol }) => servesText(protocol, operation));
  if (capable.length > 0) return capable;
  refuse(ErrorReason.MODEL_NOT_RESPONSES_CAPABLE, {
    param: "model",
    metadata: { model: model.id },
  });
}
