// The table of the texts that an item of Responses streams, with the names of their fields and events.

import type { JsonObject } from "#kit/base/json.ts";

/** A kind of text that an item streams in numbered parts. */
export interface PartKind {
  /** Type of the item that has such parts. */
  itemType: "message" | "reasoning";
  /** The part's own `type`. */
  type: "output_text" | "refusal" | "reasoning_text" | "summary_text";
  /** Field of the item that lists it. */
  list: "content" | "summary";
  /** Field of its events with its number in that list. */
  indexField: "content_index" | "summary_index";
  /** Prefix of the part's `.added` and `.done`. */
  partEvent: string;
  /** Prefix of its text's `.delta` and `.done`. */
  textEvent: string;
  /** Field that holds the text, in the part and in the `.done` event. */
  textField: "text" | "refusal";
}

const content = { list: "content", indexField: "content_index" } as const;

/** Every kind, by the prefix of its text events. */
export const partKinds: Readonly<Record<string, PartKind>> = {
  "response.output_text": {
    ...content,
    itemType: "message",
    type: "output_text",
    partEvent: "response.content_part",
    textEvent: "response.output_text",
    textField: "text",
  },
  "response.refusal": {
    ...content,
    itemType: "message",
    type: "refusal",
    partEvent: "response.content_part",
    textEvent: "response.refusal",
    textField: "refusal",
  },
  "response.reasoning_text": {
    ...content,
    itemType: "reasoning",
    type: "reasoning_text",
    partEvent: "response.content_part",
    textEvent: "response.reasoning_text",
    textField: "text",
  },
  "response.reasoning_summary_text": {
    itemType: "reasoning",
    type: "summary_text",
    list: "summary",
    indexField: "summary_index",
    partEvent: "response.reasoning_summary_part",
    textEvent: "response.reasoning_summary_text",
    textField: "text",
  },
};

/** The kind of a part by its `type`. */
export function partKindOf(type: unknown): PartKind | undefined {
  return Object.values(partKinds).find((kind) => kind.type === type);
}

/** A part that is streamed. */
export interface OpenPart {
  kind: PartKind;
  index: number;
  /** Its text so far, as much of it as is kept. */
  text: string;
  /** True where more was streamed than is kept. */
  isPartial: boolean;
  isTextDone: boolean;
  isDone: boolean;
}

/** The part as an object with this text. */
export function partObject(kind: PartKind, text: string): JsonObject {
  const part: JsonObject = { type: kind.type, [kind.textField]: text };
  return kind.type === "output_text" ? { ...part, annotations: [], logprobs: [] } : part;
}

/** A kind of text that an item streams as a whole: the arguments of a call. */
export interface CallKind {
  itemType: "function_call" | "custom_tool_call";
  /** Prefix of the text's `.delta` and `.done` events. */
  event: string;
  /** Field that holds the text, in the item and in the `.done` event. */
  field: "arguments" | "input";
}

/** Every kind of call, by the prefix of its events. */
export const callKinds: Readonly<Record<string, CallKind>> = {
  "response.function_call_arguments": {
    itemType: "function_call",
    event: "response.function_call_arguments",
    field: "arguments",
  },
  "response.custom_tool_call_input": {
    itemType: "custom_tool_call",
    event: "response.custom_tool_call_input",
    field: "input",
  },
};

/** The kind of call of an item type. */
export function callKindOf(itemType: string): CallKind | undefined {
  return Object.values(callKinds).find((kind) => kind.itemType === itemType);
}
