// Passes single events of a Responses stream on, each type in its way. `reader.ts` reads the stream and chooses the handler.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { textOfEvent, textOfItem } from "../generated-text.ts";
import { opaqueIn } from "../opaque.ts";
import { completeItem, completePart, isText } from "./complete-item.ts";
import type { OpenItem } from "./output-tracker.ts";
import {
  type CallKind,
  callKinds,
  type OpenPart,
  type PartKind,
  partKindOf,
  partKinds,
} from "./parts.ts";
import type { StreamState } from "./stream-state.ts";

/** Passes one event on, with everything that is missing before and in it. */
export type EventHandler = (state: StreamState, event: JsonObject, source: SseEvent) => void;

/** The handlers of events about a part of the output. Events of other types are for {@link other}. */
export const handlers: ReadonlyMap<string, EventHandler> = new Map([
  ...Object.entries(partKinds).flatMap(([prefix, kind]) => [
    [`${prefix}.delta`, textDelta(kind)] as const,
    [`${prefix}.done`, textDone(kind)] as const,
  ]),
  ...Object.entries(callKinds).flatMap(([prefix, kind]) => [
    [`${prefix}.delta`, argsDelta(kind)] as const,
    [`${prefix}.done`, argsDone(kind)] as const,
  ]),
  ["response.output_item.added", itemAdded],
  ["response.output_item.done", itemDone],
  ["response.content_part.added", partAddedOrDone],
  ["response.content_part.done", partAddedOrDone],
  ["response.reasoning_summary_part.added", partAddedOrDone],
  ["response.reasoning_summary_part.done", partAddedOrDone],
]);

function textDelta(kind: PartKind): EventHandler {
  return (state, event, source) => {
    const item = state.tracker.itemFor(event, kind.itemType);
    const part = state.tracker.partFor(item, kind, event[kind.indexField]);
    let isChanged = place(event, item, part);
    const text = textOfEvent(event);
    if (event.delta !== text) isChanged = put(event, "delta", text);
    if (!Array.isArray(event.logprobs)) isChanged = logprobs(event, kind) || isChanged;
    state.tracker.keepText(item, part, text);
    state.emitter.pass(event, source, isChanged, text);
  };
}

function textDone(kind: PartKind): EventHandler {
  return (state, event, source) => {
    const item = state.tracker.itemFor(event, kind.itemType);
    const part = state.tracker.partFor(item, kind, event[kind.indexField]);
    state.tracker.catchUpText(item, part, event[kind.textField]);
    let isChanged = place(event, item, part);
    if (typeof event[kind.textField] !== "string")
      isChanged = put(event, kind.textField, part.text);
    isChanged = logprobs(event, kind) || isChanged;
    part.isTextDone = true;
    const text = state.tracker.unlike(item, event[kind.textField] as string);
    state.emitter.pass(event, source, isChanged, text);
  };
}

function argsDelta(kind: CallKind): EventHandler {
  return (state, event, source) => {
    const item = state.tracker.itemFor(event, kind.itemType);
    let isChanged = place(event, item);
    const text = textOfEvent(event);
    isChanged = put(event, "delta", text) || isChanged;
    state.tracker.keepArgs(item, text);
    state.emitter.pass(event, source, isChanged, text);
  };
}

function argsDone(kind: CallKind): EventHandler {
  return (state, event, source) => {
    const item = state.tracker.itemFor(event, kind.itemType);
    const whole = event[kind.field];
    state.tracker.catchUpArgs(item, isText(whole) ? whole : item.givenArgs);
    let isChanged = place(event, item);
    if (!isText(whole)) isChanged = put(event, kind.field, item.args) || isChanged;
    item.areArgsDone = true;
    const text = state.tracker.unlike(item, event[kind.field] as string);
    state.emitter.pass(event, source, isChanged, text);
  };
}

function itemAdded(state: StreamState, event: JsonObject, source: SseEvent): void {
  const { tracker, facts, emitter } = state;
  const found = isJsonObject(event.item) ? event.item : {};
  const item = { ...completeItem(found, facts, "in_progress") };
  const open = tracker.begin(item, event.output_index);
  const isMoved = put(event, "output_index", open.index);
  const isChanged = isMoved || !hasSameFields(item, found);
  event.item = item;
  const text = tracker.uncounted(open, item);
  emitter.pass(event, source, isChanged, text, state.fresh(opaqueIn(item)));
}

function itemDone(state: StreamState, event: JsonObject, source: SseEvent): void {
  const { tracker, facts, emitter } = state;
  const found = isJsonObject(event.item) ? event.item : {};
  const type = isText(found.type)
    ? found.type
    : (tracker.at(event.output_index)?.type ?? "message");
  const open = tracker.itemFor({ ...event, item_id: found.id ?? null }, type);
  tracker.closeWithin(open, found);
  const item = completeItem(tracker.finished(open, { ...found, type }), facts);
  const isMoved = put(event, "output_index", open.index);
  event.item = item;
  open.item = item;
  open.isDone = true;
  const isChanged = isMoved || !hasSameFields(item, found);
  const text = tracker.uncounted(open, item);
  emitter.pass(event, source, isChanged, text, state.fresh(opaqueIn(item)));
}

/** Do both have exactly the same values under the same names? */
function hasSameFields(a: JsonObject, b: JsonObject): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function partAddedOrDone(state: StreamState, event: JsonObject, source: SseEvent): void {
  const { tracker, emitter } = state;
  const found = isJsonObject(event.part) ? event.part : {};
  const kind = partKindOf(found.type);
  // For an unknown kind of part nothing has to be remembered.
  if (!kind) {
    other(state, event, source);
    return;
  }
  const item = tracker.itemFor(event, kind.itemType);
  const list = item.parts.filter((part) => part.kind.list === kind.list);
  const isAdded = `${event.type}`.endsWith(".added");
  const isNew = isAdded && !list.some((part) => part.index === event[kind.indexField]);
  const part = isNew
    ? tracker.beginPart(item, kind, list.length)
    : tracker.partFor(item, kind, event[kind.indexField]);
  let isChanged = place(event, item, part);
  const whole = completePart(found);
  if (!isAdded) {
    tracker.catchUpText(item, part, whole[kind.textField]);
    part.isDone = true;
  }
  isChanged ||= whole !== event.part;
  event.part = whole;
  const text = tracker.unlike(item, `${whole[kind.textField] ?? ""}`);
  emitter.pass(event, source, isChanged, text);
}

/**
 * Passes an event that has no rule of its own. The item's name in it is corrected, and its `response` has only the fields that callers
 * see.
 */
export function other(state: StreamState, event: JsonObject, source: SseEvent): void {
  const item = state.tracker.at(event.output_index);
  let isChanged = false;
  if (item) isChanged = put(event, "output_index", item.index);
  if (item && typeof event.item_id === "string") {
    isChanged = put(event, "item_id", item.id) || isChanged;
  }
  if (isJsonObject(event.response)) {
    // Items come with their own events.
    event.response = { ...state.complete(event.response, "in_progress"), output: [] };
    isChanged = true;
  }
  const isDelta = `${event.type}`.endsWith(".delta");
  const owner = item ?? state.tracker.elsewhere;
  // An event that is not a delta usually repeats deltas.
  const said = textOfEvent(event) + textOfItem(event.item ?? null);
  const text = isDelta ? said : said.slice(owner.counted);
  owner.counted += text.length;
  const opaque = isJsonObject(event.item) ? state.fresh(opaqueIn(event.item)) : [];
  state.emitter.pass(event, source, isChanged, text, opaque);
}

/** Gives an event the right name and place of its item, and of its part where it has one. True where that changed the event. */
function place(event: JsonObject, item: OpenItem, part?: OpenPart): boolean {
  const isRight = event.item_id === item.id && event.output_index === item.index;
  if (!isRight) {
    event.item_id = item.id;
    event.output_index = item.index;
  }
  if (!part || event[part.kind.indexField] === part.index) return !isRight;
  return put(event, part.kind.indexField, part.index);
}

function logprobs(event: JsonObject, kind: PartKind): boolean {
  if (kind.type !== "output_text" || Array.isArray(event.logprobs)) return false;
  event.logprobs = [];
  return true;
}

/** Sets a field. True where that changed the event. */
function put(event: JsonObject, name: string, value: string | number): boolean {
  if (event[name] === value) return false;
  event[name] = value;
  return true;
}
