import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
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
 * The `output` of the terminal event. Open items and parts are closed before it. Items that the upstream shows only here get their
 * events. Every item keeps its name and its place in the stream.
 */
export function finalOutput(
  state: StreamState,
  found: JsonValue | undefined,
  status: "completed" | "incomplete",
): FinalOutput {
  const { tracker } = state;
  const shown = Array.isArray(found) ? found.filter(isJsonObject) : [];
  const streamed = [...tracker.all()];
  const twins = pair(shown, streamed);
  const shownAs = new Map(twins.map((open, at) => [open, shown[at]]));
  for (const open of streamed) close(state, open, shownAs.get(open), status);
  let text = "";
  for (const [at, item] of shown.entries()) {
    const twin = twins[at];
    if (twin) twin.item = renamed(state, item, twin);
    text += tracker.uncounted(twin ?? bringUp(state, item, status), item);
  }
  // In the order of the stream, not in that of the upstream's list. `output_index` is the place in the stream.
  return { items: tracker.all().map((open) => open.item), text };
}

/** Finds the streamed item of each shown item, by its name or else by its place and type. */
function pair(
  shown: readonly JsonObject[],
  streamed: readonly OpenItem[],
): (OpenItem | undefined)[] {
  const left = new Set(streamed);
  const byId = new Map<JsonValue | undefined, OpenItem>();
  const byType = new Map<JsonValue | undefined, OpenItem[]>();
  // Backwards, so that the first item of a name stays in the map, and each list is taken from its end.
  for (const open of streamed.toReversed()) {
    byId.set(open.id, open);
    const same = byType.get(open.type);
    if (same) same.push(open);
    else byType.set(open.type, [open]);
  }
  const take = (open: OpenItem | undefined) => (open && left.delete(open) ? open : undefined);
  const nextOf = (type: JsonValue | undefined) => {
    const same = byType.get(type);
    while (same && same.length > 0) {
      const open = take(same.pop());
      if (open) return open;
    }
    return undefined;
  };
  const named = shown.map(({ id }) => take(byId.get(id)));
  return shown.map(({ type }, at) => {
    const inPlace = streamed[at]?.type === type ? streamed[at] : undefined;
    return named[at] ?? take(inPlace) ?? nextOf(type);
  });
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
  const open = state.tracker.begin({ ...item });
  open.item = item;
  open.isDone = true;
  for (const event of itemEvents(item, open.index)) {
    const text = typeof event.delta === "string" ? event.delta : "";
    open.counted += text.length;
    state.emitter.send(event, { text });
  }
  return open;
}
