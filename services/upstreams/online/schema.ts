import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import type { OutputPath } from "#kit/template/output-path.ts";

/** Levels of schemas within schemas that are followed. Deeper ones refer to themselves. */
const maxDepth = 32;

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
  const rule = resolved(schema, document);
  if (!rule || value === null) return [];
  const fault = (message: string): SchemaFault[] => [
    { path, message: `${message}; it would be ${shown(value)}` },
  ];
  for (const alternatives of [rule.anyOf, rule.oneOf]) {
    if (!Array.isArray(alternatives)) continue;
    const all = alternatives.map((one) => schemaFaults(value, one, document, path));
    const best = all.toSorted((a, b) => a.length - b.length)[0] ?? [];
    if (best.length > 0) {
      const known = alternatives.flatMap((one) => constantsOf(one, document));
      return known.length > 0 && !isJsonObject(value) ? fault(`must be ${listed(known)}`) : best;
    }
  }
  const parts = Array.isArray(rule.allOf) ? rule.allOf : [];
  const inParts = parts.flatMap((one) => schemaFaults(value, one, document, path));
  const constants = constantsOf(rule, document);
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
    return value.flatMap((one, index) => schemaFaults(one, items, document, [...path, index]));
  }
  return [...inParts, ...(isJsonObject(value) ? keyFaults(value, rule, document, path) : [])];
}

/** Could an answer of the schema have a text at the path? */
export function hasText(
  schema: JsonValue | undefined,
  [step, ...rest]: OutputPath,
  document: JsonObject,
): boolean {
  const rule = resolved(schema, document);
  // A part without a description may be anything.
  if (!rule) return true;
  const alternatives = [rule.anyOf, rule.oneOf, rule.allOf].find(Array.isArray);
  if (alternatives) {
    return alternatives.some((one) =>
      hasText(one, step === undefined ? [] : [step, ...rest], document),
    );
  }
  const { type = "", properties, items } = rule;
  if (step === undefined) return type === "string" || (type === "" && !isJsonObject(properties));
  if (typeof step === "string" && step !== "*") {
    if (!isJsonObject(properties)) return type === "" || type === "object";
    return Object.hasOwn(properties, step) && hasText(properties[step], rest, document);
  }
  // A single value where a list was meant is a list of one.
  if (type === "array") return hasText(items, rest, document);
  return typeof step !== "number" && hasText(rule, rest, document);
}

/** A schema with its references followed. */
function resolved(schema: JsonValue | undefined, document: JsonObject): JsonObject | undefined {
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

function constantsOf(schema: JsonValue, document: JsonObject): JsonValue[] {
  const rule = resolved(schema, document);
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
  document: JsonObject,
  path: FaultPath,
): SchemaFault[] {
  if (!isJsonObject(properties)) return [];
  const inside = Object.entries(value).flatMap(([key, one]): SchemaFault[] => {
    const at = [...path, key];
    if (!Object.hasOwn(properties, key)) return [{ path: at, message: "is no input of the model" }];
    return schemaFaults(one, properties[key], document, at);
  });
  const names = Array.isArray(required) ? required.filter((key) => typeof key === "string") : [];
  const missing = names
    .filter((key) => !Object.hasOwn(value, key))
    .map((key) => ({
      ...{ path: [...path, key], isMissing: true as const },
      message: "is required by the model, and the call does not place it",
    }));
  return [...inside, ...missing];
}

function listed(values: readonly JsonValue[]): string {
  return values.map((value) => JSON.stringify(value)).join(", ");
}

function shown(value: JsonValue): string {
  return JSON.stringify(value).slice(0, 60);
}
