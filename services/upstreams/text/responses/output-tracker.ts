// Remembers which items and parts of a Responses stream have begun, and sends the events that the upstream left out about them.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { textOfItem } from "../generated-text.ts";
import { textLimits } from "../limits.ts";
import { completeItem, type ItemFacts, idPrefixOf, isText } from "./complete-item.ts";
import type { Emitter } from "./emitter.ts";
import { partAdded, partDone, textDelta, textDone } from "./item-events.ts";
import { callKindOf, type OpenPart, type PartKind, partKindOf, partObject } from "./parts.ts";

/** An item that the upstream streams. */
export interface OpenItem {
  /** Its `output_index`: its place in the output. */
  index: number;
  /** Its name from its first event to its last. */
  id: string;
  type: string;
  /** Its last whole form: from its beginning, or from when it was done. */
  item: JsonObject;
  parts: OpenPart[];
  /** Arguments of a call so far, as much of them as is kept. */
  args: string;
  /** Arguments that it began with. They stand where no event shows others. */
  givenArgs: string;
  /** True where more was streamed than is kept. */
  isPartial: boolean;
  areArgsDone: boolean;
  isDone: boolean;
  /** Characters of the item that were counted as output. */
  counted: number;
}

/** The items of one stream, and the events that upstream left out about them. */
export class OutputTracker {
  readonly #emitter: Emitter;
  readonly #facts: ItemFacts;
  /** In the order in which they began. */
  readonly #items: OpenItem[] = [];
  /** The item that the upstream began last under each index of its own. These indexes may begin anywhere and leave some out. */
  readonly #placed = new Map<number, OpenItem>();
  /** The first item of each type and id. */
  readonly #named = new Map<string, OpenItem>();
  /** The last item of each type. */
  readonly #lastOf = new Map<string, OpenItem>();
  /** Items and parts so far. */
  #pieces = 0;
  /** Counted characters of events that belong to no item. */
  readonly elsewhere = { counted: 0 };

  constructor(emitter: Emitter, facts: ItemFacts) {
    this.#emitter = emitter;
    this.#facts = facts;
  }

  /** The item at an `output_index` of the upstream's. */
  at(index: JsonValue | undefined): OpenItem | undefined {
    return typeof index === "number" ? this.#placed.get(index) : undefined;
  }

  /** In the order of their index. */
  all(): readonly OpenItem[] {
    return this.#items;
  }

  /**
   * Remembers an item, under the upstream's index where it has one. The caller of this function sends its `added`. `item` is complete,
   * and is changed: a client appends the deltas to the text that a call begins with, so a call begins with none.
   */
  begin(item: JsonObject, upstreamIndex?: JsonValue): OpenItem {
    const type = item.type as string;
    const id = item.id as string;
    const index = this.#items.length;
    const call = callKindOf(type);
    const given = call ? item[call.field] : "";
    const givenArgs = typeof given === "string" ? given : "";
    if (call && givenArgs !== "") item[call.field] = "";
    const state = { isPartial: false, areArgsDone: false, isDone: false, counted: 0 };
    const open: OpenItem = { index, id, type, item, parts: [], args: "", givenArgs, ...state };
    this.#admit();
    this.#items.push(open);
    if (typeof upstreamIndex === "number") this.#placed.set(upstreamIndex, open);
    const name = nameOf(type, id);
    if (!this.#named.has(name)) this.#named.set(name, open);
    this.#lastOf.set(type, open);
    return open;
  }

  /** The item that an event of its text belongs to. An item that the upstream never began begins now. */
  itemFor(event: JsonObject, type: string): OpenItem {
    const { output_index: place } = event;
    const found = typeof place === "number" ? this.#placed.get(place) : undefined;
    if (found?.type === type) return found;
    const named = isText(event.item_id) && this.#named.get(nameOf(type, event.item_id));
    if (named) return named;
    const last = this.#lastOf.get(type);
    if (last && !last.isDone) return last;
    const id = isText(event.item_id) ? event.item_id : this.#facts.newId(idPrefixOf(type));
    const item = completeItem({ type, id }, this.#facts, "in_progress");
    const begun = this.begin(item, event.output_index);
    this.#emitter.send({ type: "response.output_item.added", output_index: begun.index, item });
    return begun;
  }

  /** The part that an event belongs to. A part that the upstream never began begins now. */
  partFor(item: OpenItem, kind: PartKind, index: JsonValue | undefined): OpenPart {
    const direct = typeof index === "number" ? item.parts[index] : undefined;
    return direct?.index === index && direct?.kind === kind
      ? direct
      : this.#searchedPart(item, kind, index);
  }

  #searchedPart(item: OpenItem, kind: PartKind, index: JsonValue | undefined): OpenPart {
    const same = item.parts.filter((part) => part.kind.list === kind.list);
    const found = same.find((part) => part.index === index && part.kind === kind);
    if (found) return found;
    const last = same.at(-1);
    if (typeof index !== "number" && last?.kind === kind && !last.isDone) return last;
    const part = this.beginPart(item, kind, same.length);
    this.#emitter.send(partAdded(item, part));
    return part;
  }

  /** Remembers a part. The caller of this function sends its `added`. */
  beginPart(item: OpenItem, kind: PartKind, index: number): OpenPart {
    this.#admit();
    const part = { kind, index, text: "", isPartial: false, isTextDone: false, isDone: false };
    item.parts.push(part);
    return part;
  }

  /** Text of a whole item beyond its streamed text. From now on it counts as output. */
  uncounted(open: OpenItem, whole: JsonObject): string {
    const rest = textOfItem(whole).slice(open.counted);
    open.counted += rest.length;
    return rest;
  }

  /** The end of a whole text or of whole arguments, beyond all that was counted of the item. From now on it counts as output. */
  unlike(open: OpenItem, whole: string): string {
    const rest = whole.slice(open.counted);
    open.counted += rest.length;
    return rest;
  }

  /** Remembers a delta of a part's text. */
  keepText(item: OpenItem, part: OpenPart, delta: string): void {
    item.counted += delta.length;
    if (part.text.length + delta.length > textLimits.keptChars) part.isPartial = true;
    else if (!part.isPartial) part.text += delta;
  }

  /** Remembers a delta of a call's arguments. */
  keepArgs(item: OpenItem, delta: string): void {
    item.counted += delta.length;
    if (item.args.length + delta.length > textLimits.keptChars) item.isPartial = true;
    else if (!item.isPartial) item.args += delta;
  }

  /** Sends the end of a part's text where the deltas were short of it. */
  catchUpText(item: OpenItem, part: OpenPart, text: JsonValue | undefined): void {
    if (typeof text !== "string" || part.isTextDone || part.isPartial) return;
    if (text.length <= part.text.length || !text.startsWith(part.text)) return;
    const rest = text.slice(part.text.length);
    part.text = text;
    item.counted += rest.length;
    this.#emitter.send(textDelta(item, part, rest), { text: rest });
  }

  /** Sends the end of a call's arguments where the deltas were short of them. */
  catchUpArgs(item: OpenItem, args: JsonValue | undefined): void {
    const kind = callKindOf(item.type);
    if (!kind || typeof args !== "string" || item.areArgsDone || item.isPartial) return;
    if (args.length <= item.args.length || !args.startsWith(item.args)) return;
    const delta = args.slice(item.args.length);
    item.args = args;
    item.counted += delta.length;
    const place = { item_id: item.id, output_index: item.index };
    this.#emitter.send({ type: `${kind.event}.delta`, ...place, delta }, { text: delta });
  }

  /** Sends the `done` events within an item that the upstream left out. `final` is the whole item. */
  closeWithin(item: OpenItem, final: JsonObject | undefined): void {
    const call = callKindOf(item.type);
    if (call && !item.areArgsDone) {
      const whole = final?.[call.field];
      this.catchUpArgs(item, isText(whole) ? whole : item.givenArgs);
      const place = { item_id: item.id, output_index: item.index };
      this.#emitter.send({ type: `${call.event}.done`, ...place, [call.field]: item.args });
      item.areArgsDone = true;
    }
    if (item.type === "message") this.#openFinalParts(item, final?.content);
    for (const part of item.parts) {
      const value = partValue(part, final);
      this.catchUpText(item, part, value?.[part.kind.textField]);
      if (!part.isTextDone) this.#emitter.send(textDone(item, part));
      if (!part.isDone) {
        this.#emitter.send(partDone(item, part, value ?? partObject(part.kind, part.text)));
      }
      part.isTextDone = true;
      part.isDone = true;
    }
  }

  /** An item as the upstream finished it, under the name of its first event. Text that only its deltas had is added. */
  finished(item: OpenItem, found: JsonObject): JsonObject {
    const streamed = this.snapshot(item, "completed");
    const final: JsonObject = { ...found, id: item.id };
    if (isText(item.item.call_id)) final.call_id = item.item.call_id;
    const call = callKindOf(item.type);
    if (call && !isText(final[call.field])) final[call.field] = item.args;
    for (const list of ["content", "summary"] as const) {
      const isStreamed = item.parts.some((part) => part.kind.list === list);
      if (isStreamed && !Array.isArray(final[list])) final[list] = streamed[list] ?? [];
    }
    return final;
  }

  /** The present state of an item: as the upstream finished it, or with the text that was streamed of it. */
  snapshot(item: OpenItem, status: "completed" | "incomplete"): JsonObject {
    if (item.isDone) return item.item;
    const shown: JsonObject = { ...item.item };
    const call = callKindOf(item.type);
    if (call) shown[call.field] = item.args;
    if ("status" in shown) shown.status = status;
    for (const list of ["content", "summary"] as const) {
      const parts = item.parts.filter((part) => part.kind.list === list);
      if (parts.length > 0) shown[list] = parts.map((part) => partObject(part.kind, part.text));
    }
    return shown;
  }

  /** Counts one item or part more. Throws `UpstreamFailure` at too many. */
  #admit(): void {
    if (++this.#pieces > textLimits.pieces) throw new UpstreamFailure("too_large");
  }

  #openFinalParts(item: OpenItem, content: JsonValue | undefined): void {
    if (!Array.isArray(content)) return;
    for (const [index, value] of content.entries()) {
      const kind = isJsonObject(value) ? partKindOf(value.type) : undefined;
      if (kind?.itemType === "message") this.partFor(item, kind, index);
    }
  }
}

function nameOf(type: string, id: string): string {
  return `${type} ${id}`;
}

function partValue(part: OpenPart, final: JsonObject | undefined): JsonObject | undefined {
  const list = final?.[part.kind.list];
  const value = Array.isArray(list) ? list[part.index] : undefined;
  return isJsonObject(value) && value.type === part.kind.type ? value : undefined;
}
