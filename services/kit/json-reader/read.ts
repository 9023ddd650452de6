// Reads a request's body and computes what was asked for beside it: its weight and its fingerprint. `index.ts` calls it on the
// event loop for small bodies, and `in-thread.ts` in a thread for others.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { fingerprintOf } from "#kit/base/fingerprint.ts";
import { holdsHalf, withEscapedHalves, withoutHalves } from "#kit/base/half-characters.ts";
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  mayHoldHalf,
  parseJsonBody,
  parseShaped,
} from "#kit/base/json.ts";
import { weightOf } from "#kit/base/weight.ts";
import { type ExactBody, withExactNumbers } from "./exact-numbers.ts";

/** Results that a reader can ask for beside a body's values. */
export interface Wanted {
  /** Computes the body's weight (see `weightOf` in kit/base/weight.ts), for at most this many levels of nesting. */
  weighLevels?: number;
  /** Computes the body's fingerprint, without some of its fields. A tag makes it differ from fingerprints of other uses. */
  fingerprint?: { tag?: string; without?: readonly string[] };
  /** Returns only these fields of the body. */
  only?: readonly string[];
}

/** The result of reading a body. */
export interface ReadBody {
  value: JsonObject;
  /** 0 where no weight was asked for. */
  weight: number;
  /** "" where no fingerprint was asked for. */
  fingerprint: string;
}

const mib = 1024 * 1024;
/**
 * Bytes of a body's text, which inline images and sealed state are not. This is twice the text of a million tokens. A body may be
 * larger for images and sealed state alone. No model reads more text, and every step of a request would go through it.
 */
export const maxTextBytes = 8 * mib;
/**
 * Shapes of a body's objects: the different lists of names with which they begin. Objects of equal shape count once. Other objects
 * count by their names from the first one that differs. JavaScript makes a hidden class for each, on the event loop too when values
 * come from a thread. 10,000 take some 10 ms, 100,000 take 300 ms. The tools of an agent have a few thousand.
 */
export const maxShapes = 10_000;
/** A shape, by the names that may come next. */
type Shape = Map<string, Shape>;
/** A body shorter than this cannot have too much text or too many shapes. */
const checkedFromBytes = 32 * 1024;

/**
 * Parses a body and computes the wanted results. Refuses with INVALID_JSON. Refuses a body that is large without being images with
 * PAYLOAD_TOO_LARGE. Half a character becomes U+FFFD in the values, and is kept in the fingerprint. The time depends on the body.
 */
export function readBody(bytes: Uint8Array, wanted: Wanted): ReadBody {
  return read(bytes, parseJsonBody(bytes), wanted);
}

/** Reads a body whose shape was checked already. */
export function readShaped(bytes: Uint8Array, wanted: Wanted): ReadBody {
  return read(bytes, parseShaped(bytes), wanted);
}

function read(bytes: Uint8Array, value: JsonObject, wanted: Wanted): ReadBody {
  if (bytes.length > checkedFromBytes) checkSizes(value);
  const { weighLevels, fingerprint, only } = wanted;
  const hasHalf = mayHoldHalf(bytes) && holdsHalf(value);
  const told = hasHalf ? withoutHalves(value) : value;
  return {
    value: only ? picked(told, only) : told,
    weight: weighLevels === undefined ? 0 : weightOf(told, weighLevels, bytes),
    fingerprint: fingerprint ? fingerprintIn(bytes, value, hasHalf, fingerprint) : "",
  };
}

function picked(value: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)));
}

function fingerprintIn(
  bytes: Uint8Array,
  value: JsonObject,
  hasHalf: boolean,
  wanted: NonNullable<Wanted["fingerprint"]>,
): string {
  const exact = withExactNumbers(bytes, value);
  if (!hasHalf) return fingerprintWithout(exact, wanted);
  return fingerprintWithout({ ...exact, value: withEscapedHalves(exact.value) }, wanted);
}

function fingerprintWithout(
  { value, spelled }: ExactBody,
  { tag, without = [] }: NonNullable<Wanted["fingerprint"]>,
): string {
  const rest = Object.fromEntries(
    Object.entries(value).filter(([name]) => !without.includes(name)),
  );
  if (spelled !== undefined) return fingerprintOf([tag ?? "", rest, spelled]);
  return fingerprintOf(tag === undefined ? rest : [tag, rest]);
}

/**
 * Fields that hold no text. They are images and files as a data URI, a model's output in base64, and an upstream's sealed state. Audio
 * is in such a field only in one kind of object, because `data` can be the name of anything.
 */
const sealedFields: ReadonlySet<string> = new Set([
  "file_data",
  "image_url",
  "url",
  "result",
  "encrypted_content",
]);

function checkSizes(body: JsonObject): void {
  let bytes = 0;
  let shapes = 0;
  const root: Shape = new Map();
  const visit = (value: JsonValue, name: string): void => {
    if (typeof value === "string") {
      if (!sealedFields.has(name)) bytes += value.length;
    } else if (Array.isArray(value)) {
      for (const item of value) visit(item, name);
    } else if (isJsonObject(value)) {
      let shape = root;
      for (const inner in value) {
        bytes += inner.length;
        let next = shape.get(inner);
        if (!next) {
          if (++shapes > maxShapes) {
            refuse(ErrorReason.PAYLOAD_TOO_LARGE, {
              message: "The body's objects have too many different names.",
            });
          }
          next = new Map();
          shape.set(inner, next);
        }
        shape = next;
        visit(
          value[inner] as JsonValue,
          name === "input_audio" && inner === "data" ? "file_data" : inner,
        );
      }
    }
  };
  visit(body, "");
  if (bytes > maxTextBytes) {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, {
      message:
        "The body holds more text than a model reads. Only inline images and files may be that large.",
    });
  }
}
