// Compares a value with the schema in an upstream's description. Written here because descriptions are large and may be hostile,
// so that all work is bounded.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import type { OutputPath } from "#kit/template/output-path.ts";

/** Levels of schemas within schemas that are followed. Deeper ones refer to themselves. */
const maxDepth = 32;
/** Schemas that one value is compared with. Descriptions of large models have some hundred. More would keep the event loop for long. */
const maxSchemas = 2_000;
/** Keys that a schema requires. Models have some ten. */
const maxRequired = 100;
/** Allowed values that a fault names. */
const maxListed = 50;
/** Characters of a value that a fault names. */
const maxShown = 60;

/** A way through a description that an upstream wrote. */
interface Walk {
  document: JsonObject;
  depth: number;
  left: { schemas: number };
}

const begun = (document: JsonObject): Walk => ({
  document,
  depth: 0,
  left: { schemas: maxSchemas },
});
const deeper = (walk: Walk): Walk => ({ ...walk, depth: walk.depth + 1 });

/** A value that a schema has no place for, or a value that it needs. */
export interface SchemaFault extends FoundFault {
  /** A key that the schema requires is missing. */
  isMissing?: true;
}

/**
 * The faults of a value under a schema of OpenAPI, as far as services describe the inputs of their models. That is types, enumerations,
 * bounds, keys, references and alternatives. Other parts of a schema are ignored.
 */
export function schemaFaults(
  value: JsonValue,
  schema: JsonValue | undefined,
  document: JsonObject,
  path: FaultPath = [],
): SchemaFault[] {
  return faultsIn(value, schema, begun(document), path);
}

function faultsIn(
  value: JsonValue,
  schema: JsonValue | undefined,
  walk: Walk,
  path: FaultPath,
): SchemaFault[] {
  const rule = resolved(schema, walk);
  const next = deeper(walk);
  if (!rule || value === null) return [];
  const fault = (message: string): SchemaFault[] => [
    { path, message: `${message}; it would be ${shown(value)}` },
  ];
  for (const alternatives of [rule.anyOf, rule.oneOf]) {
    if (!Array.isArray(alternatives)) continue;
    const all = alternatives.map((one) => faultsIn(value, one, next, path));
    const best = all.toSorted((a, b) => a.length - b.length)[0] ?? [];
    if (best.length > 0) {
      const known = alternatives.flatMap((one) => constantsOf(one, next).slice(0, maxListed));
      return known.length > 0 && !isJsonObject(value) ? fault(`must be ${listed(known)}`) : best;
    }
  }
  const parts = Array.isArray(rule.allOf) ? rule.allOf : [];
  const inParts = parts.flatMap((one) => faultsIn(value, one, next, path));
  const constants = constantsOf(rule, next);
  if (constants.length > 0 && !constants.includes(value as never)) {
    return fault(`must be ${listed(constants)}`);
  }
  const type = typeFault(value, rule.type);
  if (type) return fault(type);
  const { minimum, maximum, minItems, maxItems } = rule;
  const amount = typeof value === "number" ? value : undefined;
  if (amount !== undefined && typeof minimum === "number" && amount < minimum) {
    return fault(`must be at least ${minimum}`);
  }
  if (amount !== undefined && typeof maximum === "number" && amount > maximum) {
    return fault(`must be at most ${maximum}`);
  }
  if (Array.isArray(value)) {
    if (typeof minItems === "number" && value.length < minItems) {
      return [{ path, message: `must have at least ${minItems} items` }];
    }
    if (typeof maxItems === "number" && value.length > maxItems) {
      return [{ path, message: `must have at most ${maxItems} items` }];
    }
    const { items } = rule;
    return value.flatMap((one, index) => faultsIn(one, items, next, [...path, index]));
  }
  return [...inParts, ...(isJsonObject(value) ? keyFaults(value, rule, next, path) : [])];
}

/** Could an answer of the schema have a text at the path? */
export function hasText(
  schema: JsonValue | undefined,
  path: OutputPath,
  document: JsonObject,
): boolean {
  return hasTextIn(schema, path, begun(document));
}

function hasTextIn(
  schema: JsonValue | undefined,
  [step, ...rest]: OutputPath,
  walk: Walk,
): boolean {
  const rule = resolved(schema, walk);
  const next = deeper(walk);
  // A part without a description may be anything.
  if (!rule) return true;
  const alternatives = [rule.anyOf, rule.oneOf, rule.allOf].find(Array.isArray);
  if (alternatives) {
    return alternatives.some((one) =>
      hasTextIn(one, step === undefined ? [] : [step, ...rest], next),
    );
  }
  const { type = "", properties, items } = rule;
  if (step === undefined) return type === "string" || (type === "" && !isJsonObject(properties));
  if (typeof step === "string" && step !== "*") {
    if (!isJsonObject(properties)) return type === "" || type === "object";
    return Object.hasOwn(properties, step) && hasTextIn(properties[step], rest, next);
  }
  // A single value where a list was meant is a list of one.
  if (type === "array") return hasTextIn(items, rest, next);
  return typeof step !== "number" && hasTextIn(rule, rest, next);
}

/** A schema with its references followed. Undefined: there is none, or the walk has gone far enough. */
function resolved(
  schema: JsonValue | undefined,
  { document, depth: reached, left }: Walk,
): JsonObject | undefined {
  if (reached > maxDepth || left.schemas-- <= 0) return undefined;
  let rule = schema;
  for (let depth = 0; depth < maxDepth; depth++) {
    if (!isJsonObject(rule)) return undefined;
    const { $ref: name } = rule;
    if (typeof name !== "string") return rule;
    rule = name
      .replace(/^#\//, "")
      .split("/")
      .reduce<JsonValue | undefined>(
        (found, step) => (isJsonObject(found) ? found[step] : undefined),
        document,
      );
  }
  return undefined;
}

function constantsOf(schema: JsonValue, walk: Walk): JsonValue[] {
  const rule = resolved(schema, walk);
  if (!rule) return [];
  if (Array.isArray(rule.enum)) return rule.enum;
  return rule.const === undefined ? [] : [rule.const];
}

function typeFault(value: JsonValue, type: JsonValue | undefined): string | undefined {
  switch (type) {
    case "string":
      return typeof value === "string" ? undefined : "must be a text";
    case "number":
      return typeof value === "number" ? undefined : "must be a number";
    case "integer":
      return Number.isInteger(value) ? undefined : "must be a whole number";
    case "boolean":
      return typeof value === "boolean" ? undefined : "must be true or false";
    case "array":
      return Array.isArray(value) ? undefined : "must be a list";
    case "object":
      return isJsonObject(value) ? undefined : "must be an object";
    default:
      return undefined;
  }
}

function keyFaults(
  value: JsonObject,
  { properties, required }: JsonObject,
  walk: Walk,
  path: FaultPath,
): SchemaFault[] {
  if (!isJsonObject(properties)) return [];
  const inside = Object.entries(value).flatMap(([key, one]): SchemaFault[] => {
    const at = [...path, key];
    if (!Object.hasOwn(properties, key)) return [{ path: at, message: "is no input of the model" }];
    return faultsIn(one, properties[key], walk, at);
  });
  const names = Array.isArray(required) ? required.filter((key) => typeof key === "string") : [];
  const missing = names
    .filter((key) => !Object.hasOwn(value, key))
    .slice(0, maxRequired)
    .map((key) => ({
      ...{ path: [...path, key], isMissing: true as const },
      message: "is required by the model, and the call does not place it",
    }));
  return [...inside, ...missing];
}

function listed(values: readonly JsonValue[]): string {
  return values.slice(0, maxListed).map(shown).join(", ");
}

function shown(value: JsonValue): string {
  return JSON.stringify(value).slice(0, maxShown);
}
