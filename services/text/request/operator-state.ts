import { optionalBoolean } from "#kit/body.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldOf, unsupported } from "./fields.ts";

/** Names whose value is, or lists, ids of what rests in the operator's account at the upstream: no caller's (decisions section 9). */
const stateNames: ReadonlySet<string> = new Set([
  "comparison_response_id",
  "connector_id",
  "container_id",
  "file_id",
  "file_ids",
  "previous_response_id",
  "skill_id",
  "tunnel_id",
  "vector_store_ids",
]);
/** Names whose value refers to such state where it is an id or has one; `{type: auto}` makes a container for the request. */
const referringNames: ReadonlySet<string> = new Set(["container", "conversation", "prompt"]);
/**
 * Fields, by the type of the object that has them, that hold the caller's own words: schemas, arguments, headers. No name
 * means anything there.
 */
const ownWords: Readonly<Record<string, ReadonlySet<string>>> = {
  function: new Set(["function", "output_schema", "parameters"]),
  custom: new Set(["custom", "format"]),
  json_schema: new Set(["json_schema", "schema"]),
  local_shell_call: new Set(["action"]),
  mcp: new Set(["headers"]),
  mcp_list_tools: new Set(["tools"]),
  tool_search: new Set(["parameters"]),
  tool_search_call: new Set(["arguments"]),
};
/** Likewise among the properties of the request itself. */
const ownProperties: ReadonlySet<string> = new Set(["functions", "logit_bias", "metadata"]);

/** Settles what only the operator decides: `store` is false, `service_tier` the catalog's. Changes `body`. */
export function settleOperators(body: JsonObject, spec: ChatSpec): void {
  // Whatever the request's other faults: these say what the caller wanted as a whole.
  for (const name of ["previous_response_id", "conversation", "prompt"]) {
    if (fieldOf(body, name) !== undefined) unsupported(name, noState);
    delete body[name];
  }
  if (optionalBoolean(body, "background")) unsupported("background", noState);
  delete body.background;
  body.store = false;
  delete body.service_tier;
  if (spec.serviceTier) body.service_tier = spec.serviceTier;
}

const noState = "No state is kept upstream, and none that rests there can be named.";

/**
 * Refuses whatever in the body refers to state in the operator's upstream account, at its path: one pass over all of it but
 * the caller's own words. `ourFiles`: images, whose `file_id` names a file of the caller's account here.
 */
export function keepStateOut(body: JsonObject, ourFiles: ReadonlySet<JsonObject>): void {
  for (const name in body) {
    if (ownProperties.has(name)) continue;
    const found = findState(name, body[name] as JsonValue, ourFiles);
    if (found !== undefined) unsupported(found, noState);
  }
}

/** Path of the first reference in a property, itself included; undefined where there is none. Paths are made only of what is found. */
function findState(
  name: string,
  value: JsonValue,
  ourFiles: ReadonlySet<JsonObject>,
): string | undefined {
  if (value === null) return undefined;
  if (stateNames.has(name)) return isEmpty(value) ? undefined : name;
  if (referringNames.has(name) && refers(value)) return name;
  if (typeof value !== "object") return name === "background" && value === true ? name : undefined;
  const within = Array.isArray(value) ? inArray(value, ourFiles) : inObject(value, ourFiles);
  return within === undefined ? undefined : name + within;
}

function inArray(
  values: readonly JsonValue[],
  ourFiles: ReadonlySet<JsonObject>,
): string | undefined {
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (typeof value !== "object" || value === null) continue;
    const within = Array.isArray(value) ? inArray(value, ourFiles) : inObject(value, ourFiles);
    if (within !== undefined) return `[${index}]${within}`;
  }
  return undefined;
}

function inObject(object: JsonObject, ourFiles: ReadonlySet<JsonObject>): string | undefined {
  const { type } = object;
  const isTyped = typeof type === "string";
  if (type === "item_reference") return ".type";
  const own = isTyped && Object.hasOwn(ownWords, type) ? ownWords[type] : undefined;
  for (const name in object) {
    if (own?.has(name)) continue;
    if (name === "file_id" && ourFiles.has(object)) continue;
    const found = findState(name, object[name] as JsonValue, ourFiles);
    if (found !== undefined) return `.${found}`;
  }
  return undefined;
}

function isEmpty(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}

function refers(value: JsonValue): boolean {
  return typeof value === "string" || (isJsonObject(value) && fieldOf(value, "id") !== undefined);
}
