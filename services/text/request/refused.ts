import { optionalBoolean } from "#kit/body.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldOf, unsupported } from "./fields.ts";

/** Fields that name state which would rest in the operator's account at the upstream: no caller's (decisions section 9). */
const stateFields = ["previous_response_id", "conversation", "prompt"] as const;
/** Names, inside a hosted tool, of such state. */
const toolStateFields = new Set([
  "vector_store_ids",
  "file_ids",
  "file_id",
  "container_id",
  "skill_id",
]);

/**
 * Refuses what refers to state in the operator's upstream account, and settles what only the operator decides: `store`
 * is false, `service_tier` the catalog's. Changes `body`.
 */
export function keepStateOut(body: JsonObject, spec: ChatSpec): void {
  for (const name of stateFields) {
    if (fieldOf(body, name) !== undefined) {
      unsupported(name, `The parameter '${name}' is not supported: no state is kept upstream.`);
    }
    delete body[name];
  }
  if (optionalBoolean(body, "background")) {
    unsupported("background", "The parameter 'background' is not supported.");
  }
  delete body.background;
  body.store = false;
  delete body.service_tier;
  if (spec.serviceTier) body.service_tier = spec.serviceTier;
}

/** Refuses a hosted tool's references to upstream files, stores and containers, at any depth. */
export function keepToolStateOut(value: JsonValue, param: string): void {
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      keepToolStateOut(item, `${param}[${index}]`);
    });
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    const path = `${param}.${name}`;
    const isFilled = inner !== null && !(Array.isArray(inner) && inner.length === 0);
    // A container given by its id is one that rests upstream; one given by its kind is made for the request.
    const isContainer = name === "container" && typeof inner === "string";
    if (isFilled && (isContainer || toolStateFields.has(name))) unsupported(path);
    keepToolStateOut(inner, path);
  }
}
