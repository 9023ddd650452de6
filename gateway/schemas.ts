// Small functions that write the JSON schemas of the OpenAPI document. They describe. Nothing is validated by them.

import { maxIdempotencyKeyLength } from "#common/words/idempotency.ts";

/** A JSON schema. It only describes: it validates, coerces, filters and serialises nothing. */
export type Schema = { [name: string]: unknown };

/** For an object that may have further fields. */
export const open = { additionalProperties: true };
/** An object with any fields. */
export const anyObject: Schema = { type: "object", ...open };

/** The documentation of an operation. */
export interface RouteSchema {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  params?: Schema;
  querystring?: Schema;
  headers?: Schema;
  consumes?: string[];
  body?: Schema;
  response: Record<string, Schema>;
}

/** A shared component by its name. */
export function ref(name: string): Schema {
  return { $ref: `${name}#` };
}

/** A shared component, by its name. Other schemas name it with {@link ref}. */
export function component(name: string, schema: Schema): Schema {
  return { $id: name, ...schema };
}

/** One fixed text, by which the members of a union are told apart. */
export function tag(value: string): Schema {
  return { type: "string", const: value };
}

/**
 * Components for a union whose members are told apart by `type`: the union, then each member. `members` has their names and their
 * fields without `type`, by its value.
 */
export function taggedUnion(
  name: string,
  description: string,
  members: Readonly<Record<string, { name: string; fields: Fields; description?: string }>>,
): Schema[] {
  const rows = Object.entries(members);
  const mapping = Object.fromEntries(
    rows.map(([type, member]) => [type, `#/components/schemas/${member.name}`]),
  );
  return [
    component(name, {
      description,
      oneOf: rows.map(([, member]) => ref(member.name)),
      discriminator: { propertyName: "type", mapping },
    }),
    ...rows.map(([type, { name, fields, description }]) => {
      const more = description === undefined ? {} : { description };
      return component(name, fieldsOf({ type: tag(type), ...fields }, more));
    }),
  ];
}

/** Schemas of an object's fields by their names. A name that ends in `?` may be absent. */
export type Fields = Readonly<Record<string, Schema>>;

/** The same fields, each of which may be absent. */
export function optional(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, schema]) => [`${name}?`, schema]));
}

/** An object schema of fields that are present, except for those whose names end in `?`. */
export function fieldsOf(fields: Fields, more: Schema = {}): Schema {
  const names = Object.keys(fields);
  return object(
    Object.fromEntries(names.map((name) => [name.replace(/\?$/, ""), fields[name] ?? {}])),
    names.filter((name) => !name.endsWith("?")),
    more,
  );
}

/** An object schema. Properties whose names are in `required` must be present. */
export function object(
  properties: Record<string, Schema>,
  required: readonly string[] = [],
  more: Schema = {},
): Schema {
  return { type: "object", ...(required.length > 0 ? { required } : {}), properties, ...more };
}

/** A string. */
export function string(description: string, more: Schema = {}): Schema {
  return { type: "string", description, ...more };
}

/** An integer. */
export function integer(description: string, more: Schema = {}): Schema {
  return { type: "integer", description, ...more };
}

/** A number. */
export function number(description: string, more: Schema = {}): Schema {
  return { type: "number", description, ...more };
}

/** A boolean. */
export function boolean(description: string, more: Schema = {}): Schema {
  return { type: "boolean", description, ...more };
}

/** An array. */
export function arrayOf(items: Schema, description: string, more: Schema = {}): Schema {
  return { type: "array", items, description, ...more };
}

/** A JSON answer. */
export function json(description: string, schema: Schema, example?: unknown): Schema {
  const media = { schema, ...(example === undefined ? {} : { example }) };
  return { description, content: { "application/json": media } };
}

/** The header that makes a submission safe to repeat. */
export const idempotencyHeader: Schema = object({
  "Idempotency-Key": string(
    `Names one logical request, 1 to ${maxIdempotencyKeyLength} characters. The same key with the same body gives the original answer, with ` +
      "`Idempotency-Replayed: true`; with another body it is 422 `idempotency_key_reused`. An answer over 8 MiB is not " +
      "kept: then the same body is 422 `idempotency_answer_not_kept`, and nothing is generated or charged again.",
    { minLength: 1, maxLength: maxIdempotencyKeyLength },
  ),
});

const ifNoneMatch = string("304 where the ETag is one of these.");

/** The header that makes it cheap to ask again for a document that changes rarely. */
export const tagHeader: Schema = object({ "If-None-Match": ifNoneMatch });

/** The answer to a caller whose `If-None-Match` names the present ETag. */
export const notModified: Schema = { description: "The caller has it already.", type: "null" };

/** Headers of a download. */
export const downloadHeaders: Schema = object({
  Range: string("One range of bytes, e.g. `bytes=0-1023` or `bytes=-500`."),
  "If-Range": string("Gives the range only while the ETag is still this one."),
  "If-None-Match": ifNoneMatch,
});

/** Query of a download. */
export const downloadQuery: Schema = object({
  download: string("`1`: attachment disposition.", { enum: ["1"] }),
});

/** Bytes of one of these media types. */
export function contentOf(mediaTypes: readonly string[]): Schema {
  const schema = { type: "string", format: "binary" };
  return Object.fromEntries(mediaTypes.map((type) => [type, { schema }]));
}

/** The schema, or null. */
export const nullable = (schema: Schema): Schema => ({
  ...schema,
  type: [schema.type, "null"],
  ...(Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {}),
});

/** A string, or null. */
export const stringOrNull = (description: string) => nullable(string(description));

/** A time (ISO 8601), or null. */
export const dateTime = (description: string) =>
  nullable(string(description, { format: "date-time" }));

/** The fields of every error, of an answer or of a job. */
export const errorFields = {
  message: string("For people."),
  type: string("The family of the error.", {
    enum: [
      "invalid_request_error",
      "authentication_error",
      "insufficient_quota",
      "permission_error",
      "not_found_error",
      "idempotency_error",
      "rate_limit_error",
      "server_error",
    ],
  }),
  param: nullable(string("Path of the offending field, e.g. `input[0].content[1].image_url`.")),
  code: nullable(string("Machine code: see the table in the introduction.")),
};

/** Fields of an answer's `usage` with its charge. */
export const costFields: Record<string, Schema> = {
  cost: number("What was charged, in US dollars."),
  costUsdMicros: integer("The same in USD micros, exactly."),
};
