import { isJsonObject, type JsonObject } from "#kit/json.ts";
import { isTooDeep } from "#kit/upstream/call.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";

const done = Buffer.from("[DONE]");

/**
 * The JSON object of an event, `"done"` for `[DONE]`, undefined for what is neither. An event that has its type only as
 * its name gets it as `type`.
 */
export function parseEvent(source: SseEvent): JsonObject | "done" | undefined {
  if (source.data.length < 12 && source.data.toString().trim() === done.toString()) return "done";
  let value: unknown;
  try {
    value = JSON.parse(source.data.toString());
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  if (value.type === undefined && source.name && !isTooDeep(source.data)) {
    value.type = source.name;
    // The bytes lack it, so they cannot be passed on.
    source.frame = undefined;
    source.data = Buffer.from(JSON.stringify(value));
  }
  return value;
}
