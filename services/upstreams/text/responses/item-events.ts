// Makes the events of items that an upstream showed without streaming them, in whole or in part.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { callKindOf, type OpenPart, partKindOf, partObject } from "./parts.ts";

/** The place of an item in the output. */
export interface ItemPlace {
  index: number;
  id: string;
}

/** Cuts a text into the deltas in which it is streamed. */
export type Splitter = (text: string) => readonly string[];

const whole: Splitter = (text) => (text ? [text] : []);

/** `.added` of a part. */
export function partAdded(place: ItemPlace, part: OpenPart): JsonObject {
  return partEvent("added", place, part, partObject(part.kind, ""));
}

/** `.done` of a part. */
export function partDone(place: ItemPlace, part: OpenPart, value: JsonObject): JsonObject {
  return partEvent("done", place, part, value);
}

function partEvent(step: string, place: ItemPlace, part: OpenPart, value: JsonObject): JsonObject {
  return {
    type: `${part.kind.partEvent}.${step}`,
    item_id: place.id,
    output_index: place.index,
    [part.kind.indexField]: part.index,
    part: value,
  };
}

/** `.delta` of a part's text. */
export function textDelta(place: ItemPlace, part: OpenPart, delta: string): JsonObject {
  return textEvent("delta", place, part, { delta });
}

/** `.done` of a part's text. */
export function textDone(place: ItemPlace, part: OpenPart): JsonObject {
  return textEvent("done", place, part, { [part.kind.textField]: part.text });
}

function textEvent(step: string, place: ItemPlace, part: OpenPart, fields: JsonObject): JsonObject {
  return {
    type: `${part.kind.textEvent}.${step}`,
    item_id: place.id,
    output_index: place.index,
    [part.kind.indexField]: part.index,
    ...fields,
    ...(part.kind.type === "output_text" ? { logprobs: [] } : {}),
  };
}

/**
 * All events of a complete item, without sequence numbers. Its texts are cut by `split`. The item must have passed `completeItem`.
 * Types whose texts are not streamed give `added` and `done` alone.
 */
export function* itemEvents(
  item: JsonObject,
  index: number,
  split: Splitter = whole,
): Iterable<JsonObject> {
  const place = { index, id: item.id as string };
  const call = callKindOf(item.type as string);
  const parts = partsOf(item);
  const empty: JsonObject = { ...item };
  if (call) empty[call.field] = "";
  for (const { kind } of parts) empty[kind.list] = [];
  if (empty.status !== undefined) empty.status = "in_progress";
  yield { type: "response.output_item.added", output_index: index, item: empty };
  if (call) {
    const value = item[call.field] as string;
    const at = { item_id: place.id, output_index: index };
    for (const delta of split(value)) yield { type: `${call.event}.delta`, ...at, delta };
    yield { type: `${call.event}.done`, ...at, [call.field]: value };
  }
  for (const part of parts) yield* partEvents(place, part, split);
  yield { type: "response.output_item.done", output_index: index, item };
}

function* partEvents(
  place: ItemPlace,
  part: OpenPart & { value: JsonObject },
  split: Splitter,
): Iterable<JsonObject> {
  yield partAdded(place, part);
  for (const delta of split(part.text)) yield textDelta(place, part, delta);
  yield textDone(place, part);
  yield partDone(place, part, part.value);
}

function partsOf(item: JsonObject): (OpenPart & { value: JsonObject })[] {
  const read = (list: JsonValue | undefined) =>
    (Array.isArray(list) ? list : []).flatMap((value, index) => {
      const kind = isJsonObject(value) ? partKindOf(value.type) : undefined;
      if (!kind || !isJsonObject(value) || kind.itemType !== item.type) return [];
      const text = value[kind.textField];
      const part = { kind, index, text: typeof text === "string" ? text : "" };
      const state = { isPartial: false, isTextDone: false, isDone: false };
      return [{ ...part, ...state, value }];
    });
  return [...read(item.summary), ...read(item.content)];
}
