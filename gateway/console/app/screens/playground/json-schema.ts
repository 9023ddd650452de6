// Reads the JSON schema that a reader typed for an answer.

const types = ["object", "array", "string", "number", "integer", "boolean", "null"];
/** Keywords whose value is one schema, a list of them, or an object of them by name. */
const single = ["items", "not", "additionalProperties", "contains", "propertyNames"];
const lists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const named = ["properties", "patternProperties", "$defs", "definitions"];

type Value = Record<string, unknown>;

/** A schema of an answer, or the reason in words why the text is none. Empty text is no schema. */
export function schemaOf(text: string | undefined): { schema?: Value; error?: string } {
  if (!text?.trim()) return {};
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
  if (!isObject(schema)) return { error: "A schema is a JSON object." };
  if (schema.type !== "object") return { error: 'The schema of an answer has "type": "object".' };
  const error = faultOf(schema, "The schema");
  return error ? { error } : { schema };
}

/** The first fault of a schema, with its place. */
function faultOf(schema: unknown, place: string): string | undefined {
  if (typeof schema === "boolean") return undefined;
  if (!isObject(schema)) return `${place} is no object.`;
  return typeFault(schema, place) ?? requiredFault(schema, place) ?? partFault(schema, place);
}

function typeFault({ type }: Value, place: string): string | undefined {
  if (type === undefined) return undefined;
  const wrong = [type].flat().find((one) => !types.includes(one as string));
  return wrong === undefined
    ? undefined
    : `${place} has the unknown type ${JSON.stringify(wrong)}. The types are ${types.join(", ")}.`;
}

function requiredFault({ required, properties }: Value, place: string): string | undefined {
  if (required === undefined) return undefined;
  if (!Array.isArray(required)) return `${place} has a "required" that is no list.`;
  const known = isObject(properties) ? properties : {};
  const lacking = required.find((name) => !Object.hasOwn(known, name));
  return lacking === undefined
    ? undefined
    : `${place} requires ${JSON.stringify(lacking)}, which is not among its properties.`;
}

function partFault(schema: Value, place: string): string | undefined {
  for (const [keyword, value] of Object.entries(schema)) {
    const fault = keywordFault(keyword, value, `${place} › ${keyword}`);
    if (fault) return fault;
  }
  return undefined;
}

function keywordFault(keyword: string, value: unknown, place: string): string | undefined {
  if (single.includes(keyword)) return faultOf(value, place);
  if (lists.includes(keyword)) {
    if (!Array.isArray(value)) return `${place} is no list.`;
    return firstOf(value.map((part, index) => faultOf(part, `${place} ${index + 1}`)));
  }
  if (!named.includes(keyword)) return undefined;
  if (!isObject(value)) return `${place} is no object.`;
  return firstOf(Object.entries(value).map(([name, part]) => faultOf(part, `${place} › ${name}`)));
}

function firstOf(faults: readonly (string | undefined)[]): string | undefined {
  return faults.find((fault) => fault !== undefined);
}

function isObject(value: unknown): value is Value {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
