// Lets rules be checked on a file that its schema refuses in part. So the catalog reports all faults of a file at once.

import { z } from "zod";

/** A place in a file, from its root. */
export type FaultPath = readonly (string | number)[];

/** A fault and its place. */
export interface FoundFault {
  path: FaultPath;
  /** One line, without any value from the file. */
  message: string;
}

/** Thrown when a faulty part of a file is read: rules that need the part cannot be judged. */
class InvalidPartError extends Error {
  override readonly name = "InvalidPartError";
}

/**
 * A value with its defaults where the schema takes it. Otherwise the parts of it that the schema takes. The other parts are
 * there, but reading one throws {@link InvalidPartError}. So rules between parts can be checked in a broken file, too.
 */
export function validPartsOf<T>(schema: z.ZodType<T>, value: unknown): T {
  return partOf(schema, value) as T;
}

/** The result of a rule. Empty where the rule would have to read an invalid part. */
export function whereValid<T>(rule: () => readonly T[]): readonly T[] {
  try {
    return rule();
  } catch (error) {
    if (error instanceof InvalidPartError) return [];
    throw error;
  }
}

/** {@link whereValid} of each item of a list. */
export function eachValid<T, R>(
  list: readonly T[],
  rule: (item: T, index: number) => readonly R[],
): R[] {
  return Array.from(list.keys()).flatMap((index) =>
    whereValid(() => rule(list[index] as T, index)),
  );
}

function partOf(schema: z.core.$ZodType, value: unknown): unknown {
  const whole = z.safeParse(schema, value);
  if (whole.success) return whole.data;
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) {
    return partOf(schema.unwrap(), value);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    const list: unknown[] = [];
    for (const [index, item] of value.entries()) setPart(list, index, schema.element, item);
    return list;
  }
  if (!isGroup(value)) throw new InvalidPartError();
  const parts = {};
  for (const [name, inner] of fieldsOf(schema, value)) setPart(parts, name, inner, value[name]);
  return parts;
}

/** The fields that a group of keys has by its schema. Throws where the schema has no single fields. */
function fieldsOf(
  schema: z.core.$ZodType,
  value: Record<string, unknown>,
): [string, z.core.$ZodType][] {
  if (schema instanceof z.ZodObject) return Object.entries(schema.shape);
  if (schema instanceof z.ZodRecord) {
    return Object.keys(value).map((name) => [name, schema.valueType]);
  }
  if (schema instanceof z.ZodDiscriminatedUnion) {
    const { discriminator } = schema.def;
    const chosen = schema.options.find(
      (option) =>
        option instanceof z.ZodObject &&
        z.safeParse(option.shape[discriminator], value[discriminator]).success,
    );
    if (chosen) return fieldsOf(chosen, value);
  }
  throw new InvalidPartError();
}

function setPart(
  into: object,
  name: string | number,
  schema: z.core.$ZodType,
  value: unknown,
): void {
  try {
    Object.defineProperty(into, name, { value: partOf(schema, value), enumerable: true });
  } catch (error) {
    if (!(error instanceof InvalidPartError)) throw error;
    const get = () => {
      throw error;
    };
    Object.defineProperty(into, name, { get, enumerable: true });
  }
}

function isGroup(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
