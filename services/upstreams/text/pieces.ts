// Bounds the depth and the number of parts of an upstream's answer, so that none can fill the process.

import { isJsonObject, type JsonObject, type JsonValue, maxJsonDepth } from "#kit/base/json.ts";
import { dataOf, type SseEvent } from "#kit/upstream/sse.ts";
import { isTooDeep } from "../call.ts";
import { textLimits } from "./limits.ts";
import { opaqueIn } from "./opaque.ts";
import type { CutReason } from "./stream-reader.ts";

/**
 * The reason why a stream ends at one of its events, or at a chunk. `source`: the bytes from which it was parsed. Undefined: the stream
 * goes on.
 */
export function faultOf(
  event: JsonObject | undefined,
  source: SseEvent | undefined,
): CutReason | undefined {
  if (!event) return "garbage";
  // Each level has two brackets.
  const mayBeDeep = source !== undefined && source.end - source.start > 2 * maxJsonDepth;
  const isDeep = mayBeDeep && isTooDeep(dataOf(source));
  return isDeep || hasTooManyPieces(event) ? "too_large" : undefined;
}

/** Does one event of the Responses protocol, a chat completion, or a chunk of one have more items and parts than an answer may have? */
export function hasTooManyPieces({ item, response, choices }: JsonObject): boolean {
  if (isJsonObject(item)) return piecesOf(item) > textLimits.pieces;
  if (Array.isArray(choices)) return isOverFull(choices, piecesOfChoice);
  if (!isJsonObject(response) || !Array.isArray(response.output)) return false;
  return isOverFull(response.output, piecesOf);
}

function isOverFull(list: readonly JsonValue[], piecesIn: (one: JsonValue) => number): boolean {
  let pieces = 0;
  for (const one of list) {
    pieces += piecesIn(one);
    if (pieces > textLimits.pieces) return true;
  }
  return false;
}

function piecesOfChoice(choice: JsonValue): number {
  if (!isJsonObject(choice)) return 1;
  const said = choice.delta ?? choice.message;
  if (!isJsonObject(said)) return 1;
  // A sealed part is an item in the Responses protocol, and each is remembered.
  const sealed = opaqueIn(said.reasoning_details).length;
  return 1 + lengthOf(said.content) + lengthOf(said.tool_calls) + sealed;
}

function piecesOf(item: JsonValue): number {
  if (!isJsonObject(item)) return 1;
  return 1 + lengthOf(item.content) + lengthOf(item.summary);
}

function lengthOf(list: JsonValue | undefined): number {
  return Array.isArray(list) ? list.length : 0;
}
