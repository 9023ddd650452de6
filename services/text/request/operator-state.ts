import { setImmediate } from "node:timers/promises";
import { optionalBoolean } from "#kit/body.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldOf, unsupported } from "./fields.ts";

/** Names whose value is, or lists, ids of what rests in the operator's account at the upstream: no caller's. */
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

/** Values of a body that are looked at before others get their turn: a few ms. */
const valuesAtOnce = 20_000;

/**
 * Refuses whatever in the body refers to state in the operator's upstream account, at its path: one pass over all of it but
 * the caller's own words. `ourFiles`: images, whose `file_id` names a file of the caller's account here. `onTool` hears of
 * every tool in a `tools` or `tool_choice`, wherever that stands.
 */
export async function keepStateOut(
  body: JsonObject,
  ourFiles: ReadonlySet<JsonObject>,
  onTool: OnTool,
): Promise<void> {
  const walk = new Walk(body, ourFiles, onTool);
  while (!walk.isOver(valuesAtOnce)) await setImmediate();
}

/** A tool that a body offers or asks for; `path` makes the path of its type. */
export type OnTool = (type: string, path: () => string) => void;

/** A list or an object that is being looked through. */
interface Open {
  values: readonly JsonValue[] | JsonObject;
  /** Undefined: a list. */
  names: readonly string[] | undefined;
  next: number;
  own: ReadonlySet<string> | undefined;
  /** A list of tools. */
  ofTools?: boolean;
}

class Walk {
  readonly #ourFiles: ReadonlySet<JsonObject>;
  readonly #onTool: OnTool;
  readonly #open: Open[];

  constructor(body: JsonObject, ourFiles: ReadonlySet<JsonObject>, onTool: OnTool) {
    this.#onTool = onTool;
    this.#ourFiles = ourFiles;
    this.#open = [{ values: body, names: Object.keys(body), next: 0, own: ownProperties }];
  }

  /** Looks at so many values; true after the last. Refuses at the first reference. */
  isOver(count: number): boolean {
    for (let left = count; left > 0; left--) {
      const open = this.#open.at(-1);
      if (!open) return true;
      if (open.next === (open.names ?? (open.values as readonly JsonValue[])).length) {
        this.#open.pop();
        continue;
      }
      const at = open.next++;
      if (open.names) this.#field(open.values as JsonObject, open.names[at] as string, open.own);
      else this.#enter((open.values as readonly JsonValue[])[at], open.ofTools);
    }
    return this.#open.length === 0;
  }

  #field(object: JsonObject, name: string, own: ReadonlySet<string> | undefined): void {
    const value = object[name] as JsonValue;
    if (value === null || own?.has(name)) return;
    const isOurs = name === "file_id" && this.#ourFiles.has(object);
    const isState =
      (stateNames.has(name) && !isEmpty(value) && !isOurs) ||
      (referringNames.has(name) && refers(value)) ||
      (name === "background" && value === true) ||
      (name === "type" && value === "item_reference");
    if (isState) unsupported(this.#path(), noState);
    // Deeper, an object of one of these names is a property that a schema describes.
    const isChoice = name === "tool_choice" && this.#open.length === 1 && isJsonObject(value);
    this.#enter(value, isChoice || (name === "tools" && Array.isArray(value)));
  }

  /** `isTool`: it is a tool, or a list of them. */
  #enter(value: JsonValue | undefined, isTool = false): void {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      if (value.length > 0) {
        this.#open.push({
          values: value,
          names: undefined,
          next: 0,
          own: undefined,
          ofTools: isTool,
        });
      }
      return;
    }
    const { type } = value;
    if (isTool && typeof type === "string") this.#onTool(type, () => `${this.#path()}.type`);
    const isTyped = typeof type === "string" && Object.hasOwn(ownWords, type);
    const own = isTyped ? ownWords[type] : undefined;
    this.#open.push({ values: value, names: Object.keys(value), next: 0, own });
  }

  /** Where the value stands that was looked at last. */
  #path(): string {
    const steps = this.#open.map(({ names, next }) =>
      names ? `.${names[next - 1]}` : `[${next - 1}]`,
    );
    return steps.join("").slice(1);
  }
}

function isEmpty(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}

function refers(value: JsonValue): boolean {
  return typeof value === "string" || (isJsonObject(value) && fieldOf(value, "id") !== undefined);
}
