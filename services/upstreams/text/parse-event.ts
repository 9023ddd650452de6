// Parses one event of an upstream's stream, for the readers of all protocols.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { dataOf, type SseEvent } from "#kit/upstream/sse.ts";
import { isTooDeep } from "../call.ts";

/** Names or types of events that only keep a connection open, also where they have data. */
const lifeSigns: ReadonlySet<unknown> = new Set(["ping", "keepalive", "keep-alive", "heartbeat"]);

/**
 * The JSON object of an event. `"done"` for `[DONE]`, `"nothing"` for a sign of life or an empty event, undefined for anything else. An
 * event that has its type only as its name gets it as `type`.
 */
export function parseEvent(source: SseEvent): JsonObject | "done" | "nothing" | undefined {
  if (lifeSigns.has(source.name)) return "nothing";
  const text = source.bytes.toString("utf8", source.start, source.end);
  if (text.length < 12) {
    const short = text.trim();
    if (short === "[DONE]") return "done";
    if (short === "" || short === "{}") return "nothing";
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  if (lifeSigns.has(value.type)) return "nothing";
  if (value.type === undefined && source.name && !isTooDeep(dataOf(source))) {
    value.type = source.name;
    // The original bytes lack the type.
    rewrite(source, value);
  }
  return value;
}

/** Puts a changed event in the place of the original bytes, which cannot be passed on any more. */
export function rewrite(source: SseEvent, event: JsonObject): void {
  source.bytes = Buffer.from(JSON.stringify(event));
  source.start = 0;
  source.end = source.bytes.length;
  source.frame = undefined;
}
