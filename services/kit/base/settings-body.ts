// Parses the small bodies that set something, such as a key or an account's alerts, and the drafts of the catalog. The routes and
// the services that take such bodies share it.

import { ErrorReason, refuse } from "./errors.ts";
import { holdsHalf, withoutHalves } from "./half-characters.ts";
import { type JsonObject, maxJsonMarks, mayHoldHalf, parseJsonBody, shapeFault } from "./json.ts";

/**
 * Bytes of a body with settings, such as those of a key or of an account's alerts. The longest key, with 200 models, has some 40
 * KB. The body is parsed on the event loop, before the caller's right to set anything is checked.
 */
export const maxSettingsBytes = 64 * 1024;
/** Names in a body with settings. A key has some 20. A new name costs the parser some microseconds. */
export const maxSettingsNames = 500;
/**
 * Values and names in a body that is one long text, such as a draft of the catalog, which has one of each. 2 MiB of new names
 * block the event loop for a fifth of a second. 2 MiB of escaped quotes within one text block it for 15 ms.
 */
export const maxTextBodyMarks = 100;

/** A body with settings, for the service that reads it with {@link parseSettings}. */
export function settingsBody(settings: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(settings));
}

/**
 * Parses a body with settings, which is small. A body that is larger, or has too many names, is refused with PAYLOAD_TOO_LARGE.
 */
export function parseSettings(body: Uint8Array): JsonObject {
  if (body.length > maxSettingsBytes) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
  if (shapeFault(body, { marks: maxJsonMarks, names: maxSettingsNames }) === "many") {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many names." });
  }
  return parseWellFormed(body);
}

/** Parses a body whose length is that of one text in it. A body with more values beside it is refused with PAYLOAD_TOO_LARGE. */
export function parseTextBody(body: Uint8Array): JsonObject {
  if (shapeFault(body, { marks: maxTextBodyMarks }) === "many") {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many values." });
  }
  return parseWellFormed(body);
}

/** Parses a body, with U+FFFD in place of each half character. */
function parseWellFormed(body: Uint8Array): JsonObject {
  const value = parseJsonBody(body);
  return mayHoldHalf(body) && holdsHalf(value) ? withoutHalves(value) : value;
}
