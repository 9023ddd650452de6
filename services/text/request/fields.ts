// Small readers of a body's fields, which refuse with the path of the wrong one. Every check of a request uses them.

import { codePoints, optionalObject, optionalString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** Items or messages of a body that are checked before other work has its turn. They take a few ms. */
export const itemsAtOnce = 2_000;

/** A field that is present. Null counts as absent. */
export function fieldOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** An object. Refuses any other value with INVALID_TYPE. */
export function objectAt(value: JsonValue | undefined, param: string): JsonObject {
  return isJsonObject(value) ? value : refuse(ErrorReason.INVALID_TYPE, { param });
}

/** An array that must be present and not empty. */
export function filledArray(value: JsonValue | undefined, param: string): JsonValue[] {
  if (value === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  if (!Array.isArray(value)) refuse(ErrorReason.INVALID_TYPE, { param });
  if (value.length === 0) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  return value;
}

/** Refuses with UNSUPPORTED_PARAMETER. */
export function unsupported(param: string, message?: string): never {
  refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param, ...(message ? { message } : {}) });
}

/**
 * A bound of the output, `least` or more. One above the model's maximum is lowered to it, in the body too, so that no upstream generates more
 * than is paid for.
 */
export function outputLimit(
  body: JsonObject,
  name: string,
  spec: ChatSpec,
  least = 1,
): number | undefined {
  const value = fieldOf(body, name);
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    refuse(ErrorReason.INVALID_TYPE, {
      param: name,
      message: `The parameter '${name}' must be an integer.`,
    });
  }
  if (value < least) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: name,
      message: `The parameter '${name}' must be at least ${least}.`,
    });
  }
  const limit = Math.min(value, Number(spec.maxOutputTokens));
  body[name] = limit;
  return limit;
}

/** Bounds of `metadata`, which answers repeat. They are OpenAI's own. */
const maxMetadata = { pairs: 16, nameCharacters: 64, valueCharacters: 512 };

/** Refuses metadata that is more than a few short strings with INVALID_TYPE or INVALID_VALUE, at its path. */
export function checkMetadata(body: JsonObject): void {
  const metadata = optionalObject(body, "metadata") ?? {};
  const names = Object.keys(metadata);
  const { pairs, nameCharacters, valueCharacters } = maxMetadata;
  const isTooLong = (name: string) => codePoints(name, nameCharacters) > nameCharacters;
  if (names.length > pairs || names.some(isTooLong)) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "metadata",
      message: `The parameter 'metadata' may have at most ${pairs} names of ${nameCharacters} characters.`,
    });
  }
  for (const name of names) {
    const param = `metadata.${name}`;
    if (typeof metadata[name] !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
    optionalString(metadata, name, { max: valueCharacters }, param);
  }
}

/** The configured prompt, then the caller's own instructions. */
export function instructionsOf(developerPrompt: string, caller: string | null): string {
  if (!caller) return developerPrompt;
  return developerPrompt === "" ? caller : `${developerPrompt}\n\n${caller}`;
}
