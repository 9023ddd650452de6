// Reads single fields of a parsed JSON body, and refuses a missing or wrong one with the error of the API's contract. The
// services and the console read bodies with it. `typed-body.ts` makes such a body of a typed message.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** Bounds of a string field, in Unicode code points. */
export interface StringRule {
  /** Least length. Default: 0. With 1 or more, an empty string counts as missing. */
  min?: number;
  max?: number;
  /** A string of white space alone counts as missing, as an empty string does. */
  notBlank?: boolean;
  /** Accepted values. */
  oneOf?: readonly string[];
}

/** Inclusive bounds of a number field. */
export interface NumberRule {
  min?: number;
  max?: number;
  integer?: boolean;
}

/** A string that must be present. Refuses with MISSING_REQUIRED_PARAMETER, INVALID_TYPE or INVALID_VALUE at `param`. */
export function requiredString(
  body: JsonObject,
  name: string,
  rule: StringRule = {},
  param = name,
): string {
  return (
    optionalString(body, name, rule, param) ??
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param })
  );
}

/** A string that may be absent. Null counts as absent. */
export function optionalString(
  body: JsonObject,
  name: string,
  rule: StringRule = {},
  param = name,
): string | undefined {
  const value = present(body, name);
  if (value === undefined) return undefined;
  if (typeof value !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
  const { min = 0, max } = rule;
  const isMissing = rule.notBlank ? value.trim() === "" : value === "" && min > 0;
  if (isMissing) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  // Counted only as far as the rule needs: a text without a bound may be a file of megabytes.
  const length = max === undefined && min <= 1 ? 1 : codePoints(value, max ?? min);
  if (length < min || length > (max ?? Number.POSITIVE_INFINITY)) {
    refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `The parameter '${param}' must have at most ${rule.max} characters.`,
    });
  }
  if (rule.oneOf && !rule.oneOf.includes(value)) {
    refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `The parameter '${param}' must be one of: ${rule.oneOf.join(", ")}.`,
    });
  }
  return value;
}

/** A number that may be absent. Null counts as absent. */
export function optionalNumber(
  body: JsonObject,
  name: string,
  rule: NumberRule = {},
  param = name,
): number | undefined {
  const value = present(body, name);
  if (value === undefined) return undefined;
  if (typeof value !== "number") refuse(ErrorReason.INVALID_TYPE, { param });
  if (rule.integer && !Number.isInteger(value)) refuse(ErrorReason.INVALID_TYPE, { param });
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = rule;
  if (value < min || value > max) {
    refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `The parameter '${param}' must be a number ${boundsText(rule)}.`,
    });
  }
  return value;
}

function boundsText({ min, max }: NumberRule): string {
  if (max === undefined) return `of at least ${min}`;
  return min === undefined ? `of at most ${max}` : `from ${min} to ${max}`;
}

/** A boolean that may be absent. Null counts as absent. */
export function optionalBoolean(body: JsonObject, name: string, param = name): boolean | undefined {
  const value = present(body, name);
  if (value === undefined || typeof value === "boolean") return value;
  refuse(ErrorReason.INVALID_TYPE, { param });
}

/** An object that may be absent. Null counts as absent. */
export function optionalObject(
  body: JsonObject,
  name: string,
  param = name,
): JsonObject | undefined {
  const value = present(body, name);
  if (value === undefined || isJsonObject(value)) return value;
  refuse(ErrorReason.INVALID_TYPE, { param });
}

/** An array that may be absent. Null counts as absent. */
export function optionalArray(
  body: JsonObject,
  name: string,
  param = name,
): JsonValue[] | undefined {
  const value = present(body, name);
  if (value === undefined || Array.isArray(value)) return value;
  refuse(ErrorReason.INVALID_TYPE, { param });
}

/** Number of Unicode code points. Stops counting past `most`. */
export function codePoints(text: string, most = Number.POSITIVE_INFINITY): number {
  let count = 0;
  for (const _ of text) if (++count > most) break;
  return count;
}

function present(body: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(body, name) ? (body[name] ?? undefined) : undefined;
}
