// Reads a message of a socket, and makes the body that the text service takes of it and the conversation so far.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { joinInTurns, jsonInTurns } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { bodyLimitsBytes } from "../limits.ts";
import type { Chain } from "./chains.ts";
import { laneName } from "./limits.ts";

/** A message that asks for a response. */
export interface Create {
  /** The body of `POST /responses`, without its input. */
  body: JsonObject;
  /** New items of the input. Undefined: the input is no list, and is in the body unchanged. */
  items: JsonValue[] | undefined;
  previousId: string | undefined;
  /** The caller wants no output, only the beginning of a chain. */
  isWarmUp: boolean;
}

/** The lane that a message names. "" where it names none. Refuses with INVALID_STREAM_ID. */
export function laneOf({ stream_id: name }: JsonObject): string {
  if (name === undefined || name === null) return "";
  if (typeof name === "string" && laneName.test(name)) return name;
  return refuse(ErrorReason.INVALID_STREAM_ID, { param: "stream_id" });
}

/** Reads a message. Refuses one that asks for something else than a response. */
export function createOf(message: JsonObject): Create {
  const { type, stream, stream_id, generate, previous_response_id, input, ...rest } = message;
  if (type === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "type" });
  if (type !== "response.create") refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param: "type" });
  const previousId = previous_response_id ?? undefined;
  if (previousId !== undefined && typeof previousId !== "string") {
    refuse(ErrorReason.INVALID_TYPE, { param: "previous_response_id" });
  }
  if (generate !== undefined && typeof generate !== "boolean") {
    refuse(ErrorReason.INVALID_TYPE, { param: "generate" });
  }
  const items = itemsOf(input, previousId !== undefined || generate === false);
  return {
    body: items || input === undefined ? rest : { ...rest, input },
    items,
    previousId,
    isWarmUp: generate === false,
  };
}

/** The items of an input. Text is the message of a user. */
function itemsOf(input: JsonValue | undefined, isPart: boolean): JsonValue[] | undefined {
  if (Array.isArray(input)) return input;
  if (typeof input === "string" && input !== "") return [{ role: "user", content: input }];
  if (!isPart) return undefined;
  return input === undefined || input === ""
    ? []
    : refuse(ErrorReason.INVALID_TYPE, { param: "input" });
}

/** Refuses an output of a call that is neither in the chain nor in the new items. */
export function checkOutputs(items: readonly JsonValue[], chain: Chain): void {
  const calls = callsIn(items);
  for (const [index, item] of items.entries()) {
    if (!isJsonObject(item) || item.type !== "function_call_output") continue;
    const { call_id: id } = item;
    if (typeof id !== "string" || calls.has(id) || chain.calls.has(id)) continue;
    refuse(ErrorReason.INVALID_VALUE, {
      param: `input[${index}].call_id`,
      message: "No call of the conversation has this call_id.",
    });
  }
}

/** The ids of the calls in items. */
export function callsIn(items: readonly JsonValue[]): Set<string> {
  const calls = new Set<string>();
  for (const item of items) {
    if (!isJsonObject(item) || typeof item.call_id !== "string") continue;
    if (typeof item.type === "string" && item.type.endsWith("_call")) calls.add(item.call_id);
  }
  return calls;
}

const comma = Buffer.from(",");
const listBegin = Buffer.from('{"items":[').length;
const listEnd = Buffer.from("]}").length;

/** Items behind those of a chain, as JSON with commas between them. The chain's bytes stay as they were. */
export async function joined(
  before: Uint8Array,
  items: readonly JsonValue[],
): Promise<Uint8Array<ArrayBufferLike>> {
  if (items.length === 0) return before;
  const list = Buffer.from(await jsonInTurns({ items: items as JsonValue[] }));
  const added = list.subarray(listBegin, list.length - listEnd);
  return before.length === 0 ? added : joinInTurns([before, comma, added]);
}

/** The body of `POST /responses`: the options of a message around all items. Refuses with PAYLOAD_TOO_LARGE. */
export async function bodyOf(
  options: JsonObject,
  items: Uint8Array | undefined,
): Promise<Uint8Array> {
  const { stream: _, ...asked } = options;
  const head = Buffer.from(await jsonInTurns({ ...asked, stream: true }));
  const length = head.length + (items?.length ?? 0);
  if (length > bodyLimitsBytes.text) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
  if (!items) return head;
  const open = head.subarray(0, head.length - 1);
  return joinInTurns([open, Buffer.from(',"input":['), items, Buffer.from("]}")]);
}
