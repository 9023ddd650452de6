import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import { completeItem } from "./complete-item.ts";
import { itemEvents } from "./item-events.ts";
import type { OpenItem } from "./output-tracker.ts";
import type { StreamState } from "./stream-state.ts";

/** The `output` of a terminal event. */
export interface FinalOutput {
  items: JsonObject[];
  /** Generated text that was not shown before. */
  text: string;
}

/**
 * The `output` of the terminal event. What was left open is closed before it, what upstream shows only here gets its
 * events, and every item is called what it was called in the stream. Without one of upstream's, it is what was streamed.
 */
export function finalOutput(
  state: StreamState,
  found: JsonValue | undefined,
  status: "completed" | "incomplete",
): FinalOutput {
  const { tracker } = state;
  const shown = Array.isArray(found) ? found.filter(isJsonObject) : [];
  const streamed = tracker.all();
  const twins = pair(shown, streamed);
  for (const open of streamed) {
    const at = twins.indexOf(open);
    close(state, open, at === -1 ? undefined : shown[at], status);
  }
  if (shown.length === 0) return { items: streamed.map((open) => open.item), text: "" };
  let text = "";
  const items = shown.map((item, at) => {
    const twin = twins[at];
    const open = twin ?? bringUp(state, item, status);
    text += tracker.uncounted(open, item);
    return twin ? renamed(state, item, twin) : open.item;
  });
  return { items, text };
}

/** For each shown item the streamed one that it is: by its name, else by its place and type. */
function pair(
  shown: readonly JsonObject[],
  streamed: readonly OpenItem[],
): (OpenItem | undefined)[] {
  const left = new Set(streamed);
  const take = (open: OpenItem | undefined) => {
    if (!open || !left.has(open)) return undefined;
    left.delete(open);
    return open;
  };
  const named = shown.map((item) => take(streamed.find((open) => open.id === item.id)));
  return shown.map((item, at) => {
    const inPlace = streamed[at]?.type === item.type ? streamed[at] : undefined;
    const next = inPlace && left.has(inPlace) ? inPlace : [...left].find(sameType(item));
    return named[at] ?? take(next);
  });
}

function sameType(item: JsonObject): (open: OpenItem) => boolean {
  return (open) => open.type === item.type;
}

function close(
  state: StreamState,
  open: OpenItem,
  shown: JsonObject | undefined,
  status: "completed" | "incomplete",
): void {
  if (open.isDone) return;
  state.tracker.closeWithin(open, shown);
  const item = shown ? renamed(state, shown, open) : state.tracker.snapshot(open, status);
  open.item = item;
  open.isDone = true;
  state.emitter.send({ type: "response.output_item.done", output_index: open.index, item });
}

function renamed(state: StreamState, item: JsonObject, open: OpenItem): JsonObject {
  return completeItem(state.tracker.finished(open, item), state.facts);
}

/** Streams an item that upstream shows only in its last event. */
function bringUp(state: StreamState, found: JsonObject, status: string): OpenItem {
  const item = completeItem(found, state.facts, status);
  const index = state.tracker.nextIndex();
  const open = state.tracker.begin(item, index);
  open.isDone = true;
  for (const event of itemEvents(item, index)) {
    const text = typeof event.delta === "string" ? event.delta : "";
    open.counted += text.length;
    state.emitter.send(event, { text });
  }
  return open;
}
