// Fills the fields of a message that say how it ended. Streams and whole messages share it.

import type { JsonObject } from "#kit/base/json.ts";

/** How a message ended, with every field. All are null in one that has not. */
export function stopFields(found: JsonObject): JsonObject {
  return {
    stop_reason: found.stop_reason ?? null,
    stop_sequence: found.stop_sequence ?? null,
    stop_details: found.stop_details ?? null,
  };
}
