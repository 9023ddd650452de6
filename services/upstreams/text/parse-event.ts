import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { isTooDeep } from "../call.ts";

const done = Buffer.from("[DONE]");
/** Names or types of events that only keep a connection open, also where they have data. */
const lifeSigns: ReadonlySet<unknown> = new Set(["ping", "keepalive", "keep-alive", "heartbeat"]);

/**
 * The JSON object of an event. `"done"` for `[DONE]`, `"nothing"` for a sign of life or an empty event, undefined for anything else. An
 * event that has its type only as its name gets it as `type`.
 */
export function parseEvent(source: SseEvent): JsonObject | "done" | "nothing" | undefined {
  if (lifeSigns.has(source.name)) return "nothing";
  if (source.data.length < 12) {
    const text = source.data.toString().trim();
    if (text === done.toString()) return "done";
    if (text === "" || text === "{}") return "nothing";
  }
  let value: unknown;
  try {
    value = JSON.parse(source.data.toString());
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  if (lifeSigns.has(value.type)) return "nothing";
  if (value.type === undefined && source.name && !isTooDeep(source.data)) {
    value.type = source.name;
    // The original bytes lack the type, so they cannot be passed on.
    source.frame = undefined;
    source.data = Buffer.from(JSON.stringify(value));
  }
  return value;
}
