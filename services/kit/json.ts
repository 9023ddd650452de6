import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { ErrorReason, refuse } from "./errors.ts";
import { checkJsonShape } from "./json-shape.ts";

/** A parsed JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A parsed JSON object. */
export type JsonObject = { [name: string]: JsonValue };

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Is it an object (not an array, not null)? */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Parses a request body, whoever sent it. Refuses with INVALID_JSON what is no UTF-8, no JSON, or no object, and before
 * that what would be huge once parsed: see {@link checkJsonShape}.
 */
export function parseJsonBody(body: Uint8Array): JsonObject {
  checkJsonShape(body);
  let value: unknown;
  try {
    value = JSON.parse(strictUtf8.decode(body));
  } catch {
    refuse(ErrorReason.INVALID_JSON);
  }
  return isJsonObject(value) ? value : refuse(ErrorReason.INVALID_JSON);
}

/**
 * SHA-256 (hexadecimal) of the canonical form (RFC 8785): the same for bodies that mean the same. Refuses with INVALID_JSON
 * what has no such form: half a surrogate pair, a number beyond a double's range.
 */
export function fingerprintOf(value: JsonValue): string {
  const hash = createHash("sha256");
  try {
    hash.update(canonicalize(value) ?? "");
  } catch (cause) {
    refuse(ErrorReason.INVALID_JSON, { cause });
  }
  return hash.digest("hex");
}
