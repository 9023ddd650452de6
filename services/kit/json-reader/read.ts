import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { hasHalfCharacter, withEscapedHalves, withoutHalves } from "#kit/base/half-characters.ts";
import {
  fingerprintOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJsonBody,
  parseShaped,
} from "#kit/base/json.ts";
import { weightOf } from "#kit/base/weight.ts";
import { type ExactBody, withExactNumbers } from "./exact-numbers.ts";

/** What is wanted of a body beside its values. */
export interface Wanted {
  /** Its weight (see `weightOf` in kit/base/weight.ts), which this many levels of nesting may have. */
  weighLevels?: number;
  /** Its fingerprint, without some of its fields, told apart from those of other uses by a tag. */
  fingerprint?: { tag?: string; without?: readonly string[] };
  /** Only these fields of it. */
  only?: readonly string[];
}

/** A body that was read. */
export interface ReadBody {
  value: JsonObject;
  /** 0 where it was not wanted. */
  weight: number;
  /** "" where it was not wanted. */
  fingerprint: string;
}

const mib = 1024 * 1024;
/**
 * Bytes of a body's text, which inline images and sealed state are not: twice the text of a million tokens. A body may be
 * larger for the sake of those alone; text of that size is read by no model, and every step of a request would go through it.
 */
export const maxTextBytes = 8 * mib;
/**
 * Shapes of a body's objects: the different lists of names with which they begin. Objects of equal shape count once, others by
 * the names from the first one that differs. JavaScript makes a hidden class for each, on the event loop too when values come
 * from a thread: 10,000 take some 10 ms, 100,000 take 300. The tools of an agent have a few thousand.
 */
export const maxShapes = 10_000;
/** A shape, by the names that may come next. */
type Shape = Map<string, Shape>;
/** A shorter body cannot have too much of either. */
const checkedFromBytes = 32 * 1024;

/**
 * Parses a body and works out what is wanted. Refuses with INVALID_JSON, or with PAYLOAD_TOO_LARGE what is large without being images.
 * Half a character is U+FFFD in what it gives, and itself in the fingerprint. Takes as long as the body makes it.
 */
export function readBody(bytes: Uint8Array, wanted: Wanted): ReadBody {
  return read(bytes, parseJsonBody(bytes), wanted);
}

/** The same of a body whose shape is known to be sound. */
export function readShaped(bytes: Uint8Array, wanted: Wanted): ReadBody {
  return read(bytes, parseShaped(bytes), wanted);
}

function read(bytes: Uint8Array, value: JsonObject, wanted: Wanted): ReadBody {
  if (bytes.length > checkedFromBytes) checkSizes(value);
  const { weighLevels, fingerprint, only } = wanted;
  const hasHalf = hasHalfCharacter(bytes, value);
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
 * Fields that hold no text: images and files as a data URI, or in base64 what a model made, and an upstream's sealed state. Sound is
 * such a field of one object alone: `data` is a name for anything.
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
