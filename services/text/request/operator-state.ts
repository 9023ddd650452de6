// Keeps a request away from objects in the operator's own account at the upstream, which no caller owns. It also takes out names
// of properties that are not sent.

import { optionalBoolean } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldOf, unsupported } from "./fields.ts";
import { type MemberKind, membersOf, namesWithin } from "./nested-names.ts";

/** Names whose value is, or lists, ids of objects in the operator's account at the upstream. No caller owns those. */
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
/** Names whose value refers to such objects where it is an id or has one. `{type: auto}` makes a container for the request. */
const referringNames: ReadonlySet<string> = new Set(["container", "conversation", "prompt"]);
/** Names of fields that may refer to state. */
const mayRefer: ReadonlySet<string> = new Set([
  ...stateNames,
  ...referringNames,
  ...["background", "type"],
]);
/**
 * Fields that hold the caller's own words, by the type of their object: schemas, arguments, headers. No name within them has a meaning.
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
/** The same among the properties of the request itself. */
const ownProperties: ReadonlySet<string> = new Set(["functions", "logit_bias", "metadata"]);
/** The same for a function or custom tool in the nested form of chat. */
const ownOfFunctions: ReadonlySet<string> = new Set(["parameters", "output_schema", "format"]);
/** Fields with own words whose first level is the API's: functions and custom tools of chat, and the older list of functions. */
const ofTheApi: ReadonlySet<string> = new Set(["function", "custom", "functions"]);

/** Sets the properties that only the operator decides: `store` is false, `service_tier` that of the catalog. Changes `body`. */
export function settleOperators(body: JsonObject, spec: ChatSpec): void {
  // Refused before other faults of the request, because these show the caller's general intent.
  for (const name of ["previous_response_id", "conversation", "prompt"]) {
    if (fieldOf(body, name) !== undefined) unsupported(name, insteadOf(name));
    delete body[name];
  }
  if (optionalBoolean(body, "background")) unsupported("background", insteadOf("background"));
  delete body.background;
  body.store = false;
  delete body.service_tier;
  if (spec.serviceTier) body.service_tier = spec.serviceTier;
}

/** The message for a reference to an item. */
export const noReferences = "Items are not stored. Send the item itself, in full.";

const wholeInput = "Answers are not stored. Send the whole conversation each time.";
const wholeFile = "Stored files are not supported here. Send the file itself.";
const ownContainer =
  'Stored containers are not supported. {"type": "auto"} makes one for the request.';

/** The advice for the caller, by the name of the property. */
const instead: Readonly<Record<string, string>> = {
  previous_response_id: wholeInput,
  conversation: wholeInput,
  prompt: "Prompts are not stored. Send the text itself.",
  background: "Answers are not stored. Send the request without 'background', best with 'stream'.",
  type: noReferences,
  file_id: wholeFile,
  file_ids: wholeFile,
  container: ownContainer,
  container_id: ownContainer,
};

function insteadOf(name: string): string {
  return (
    instead[name] ?? "What is stored at the model's provider cannot be used here. Leave it out."
  );
}

/** Values of a body that are looked at before other work has its turn. They take a few ms. */
const valuesAtOnce = 20_000;

/**
 * Refuses everything in the body that refers to state in the operator's upstream account, at its path. Takes names out of items,
 * messages, parts, tools and calls that must not be sent to the upstream (nested-names.ts). One pass covers everything except the
 * caller's own words. Changes `body`. Answers the places of names that it took out, without the numbers of items, for the header that
 * names them.
 */
export function* keepStateOut(body: JsonObject, looked: LookedThrough): Generator<void, string[]> {
  const walk = new Walk(body, looked);
  while (!walk.isOver(valuesAtOnce)) yield;
  return walk.leftOut;
}

/** Rules for looking through a body. */
export interface LookedThrough {
  /** Images whose `file_id` names a file of the caller's account at genmesh. */
  ourFiles: ReadonlySet<JsonObject>;
  /** Called for every tool in a `tools` or `tool_choice`, at any depth. */
  onTool: OnTool;
  /** The model's: names that are sent to the upstream from any place, or `*` for all names. */
  passParameters: readonly string[];
}

/** The files of a request that names none of its account. */
export const noFiles: LookedThrough["ourFiles"] = new Set();

/** Paths that are remembered. The header has fewer. */
export const maxLeftOut = 64;
/**
 * The most properties of an object of a known type: five times as many as any has. Taking thousands out of one object takes seconds.
 */
const maxNames = 256;
/** Characters of a name in such a path. The header cuts it there too. */
const maxPathName = 64;

/** A tool that a body offers or asks for. `path` makes the path of its type. */
export type OnTool = (type: string, path: () => string) => void;

/** A list or an object that is being looked through. */
interface Open {
  values: readonly JsonValue[] | JsonObject;
  /** Undefined for a list. */
  names: readonly string[] | undefined;
  next: number;
  own: ReadonlySet<string> | undefined;
  /** Names that may be sent to the upstream. Undefined: all. */
  allowed?: ReadonlySet<string> | undefined;
  /** The kind of a list's members. */
  members?: MemberKind | undefined;
}

class Walk {
  readonly #looked: LookedThrough;
  readonly #open: Open[];
  readonly #isStrict: boolean;
  readonly leftOut: string[] = [];

  constructor(body: JsonObject, looked: LookedThrough) {
    this.#looked = looked;
    this.#isStrict = !looked.passParameters.includes("*");
    this.#open = [{ values: body, names: Object.keys(body), next: 0, own: ownProperties }];
  }

  /** Looks at this many values. True after the last. Refuses at the first reference. */
  isOver(count: number): boolean {
    for (let left = count; left > 0; left--) {
      const open = this.#open.at(-1);
      if (!open) return true;
      if (open.next === (open.names ?? (open.values as readonly JsonValue[])).length) {
        this.#open.pop();
        continue;
      }
      const at = open.next++;
      if (open.names) this.#field(open, open.names[at] as string);
      else this.#enter((open.values as readonly JsonValue[])[at], open.members);
    }
    return this.#open.length === 0;
  }

  #field({ values, own, allowed }: Open, name: string): void {
    const object = values as JsonObject;
    const value = object[name] as JsonValue;
    const isOwn = own?.has(name) ?? false;
    if (value !== null && !isOwn && mayRefer.has(name)) this.#refuseState(object, name, value);
    if (allowed && !allowed.has(name) && !this.#looked.passParameters.includes(name)) {
      delete object[name];
      if (value !== null) this.#tookOut();
      return;
    }
    if (isOwn) {
      if (this.#isStrict && ofTheApi.has(name)) this.#enter(value, "function", "function");
      return;
    }
    // Most values are texts and numbers.
    if (typeof value !== "object" || value === null) return;
    const isTop = this.#open.length === 1;
    // At a greater depth, an object of this name is a property that a schema describes.
    const isChoice = name === "tool_choice" && isTop && isJsonObject(value);
    this.#enter(value, isChoice ? "tool" : undefined, membersOf(name, isTop));
  }

  #refuseState(object: JsonObject, name: string, value: JsonValue): void {
    const isOurs = name === "file_id" && this.#looked.ourFiles.has(object);
    const isState =
      (stateNames.has(name) && !isEmpty(value) && !isOurs) ||
      (referringNames.has(name) && refers(value)) ||
      (name === "background" && value === true) ||
      (name === "type" && value === "item_reference");
    if (isState) unsupported(this.#path(), insteadOf(name));
  }

  /** `kind`: its kind, where it is an object. `members`: the kind of its members, where it is a list. */
  #enter(value: JsonValue | undefined, kind?: MemberKind, members?: MemberKind): void {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      if (value.length === 0) return;
      this.#open.push({ values: value, names: undefined, next: 0, own: undefined, members });
      return;
    }
    const { type } = value;
    const isTyped = typeof type === "string";
    if (kind === "tool" && isTyped) this.#looked.onTool(type, () => `${this.#path()}.type`);
    const ofType = isTyped && Object.hasOwn(ownWords, type) ? ownWords[type] : undefined;
    const own = kind === "function" ? ownOfFunctions : ofType;
    const allowed = this.#isStrict ? namesWithin(type, kind) : undefined;
    const names = Object.keys(value);
    if (allowed && names.length > maxNames) this.#refuseNames();
    this.#open.push({ values: value, names, next: 0, own, allowed });
  }

  #refuseNames(): never {
    refuse(ErrorReason.INVALID_VALUE, {
      param: this.#path(),
      message: `An item, message, part or tool may have at most ${maxNames} properties.`,
    });
  }

  #tookOut(): void {
    if (this.leftOut.length >= maxLeftOut) return;
    const names = this.#open.flatMap(({ names, next }) => names?.[next - 1] ?? []);
    const path = names.map((name) => name.slice(0, maxPathName)).join(".");
    if (!this.leftOut.includes(path)) this.leftOut.push(path);
  }

  /** The path of the value that was looked at last. */
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
