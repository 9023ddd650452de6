// Keeps a body of Messages as its caller wrote it, for upstreams that speak Messages themselves. They refuse a turn that differs
// from what they made. Two things that they refuse are refused here, before money is held.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { exactObject, hasUnusualNumbers } from "#kit/base/exact-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { spansOf } from "#kit/base/json-spans.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { unsupported } from "./fields.ts";

/**
 * Puts the model's turns into a body of Messages as they were written, where a number could be spelled otherwise. Upstreams compare a
 * turn with what they made. `bytes`: those of the body.
 */
export function* keepTurns(body: JsonObject, bytes: Uint8Array): Generator<void, void> {
  const { messages } = body;
  if (!Array.isArray(messages) || !messages.some(isOfModel)) return;
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (const [index, [start, end]] of (yield* spansOf(json, "messages")).entries()) {
    if (!isOfModel(messages[index])) continue;
    const text = json.toString("utf8", start, end);
    const exact = hasUnusualNumbers(text) ? exactObject(text) : undefined;
    if (exact) messages[index] = exact;
    yield;
  }
}

function isOfModel(message: JsonValue | undefined): boolean {
  return isJsonObject(message) && message.role === "assistant";
}

/** Refuses a choice that makes a model call a tool, where the model refuses that, and a cache for an hour where that has no price. */
export function checkNative(body: JsonObject, { refusesForcedTools, prices }: ChatSpec): void {
  const { tool_choice: choice } = body;
  const isForced = isJsonObject(choice) && (choice.type === "any" || choice.type === "tool");
  if (isForced && refusesForcedTools) {
    unsupported("tool_choice", "The model cannot be made to call a tool. Use auto or none.");
  }
  if (prices?.base?.cacheWriteLong !== undefined) return;
  for (const name of ["cache_control", "tools", "system", "messages"]) {
    if (hasLongCache(body[name] ?? null, name === "cache_control", 0)) {
      refuse(ErrorReason.UNSUPPORTED_PARAMETER, {
        param: name,
        message: "The model has no cache of an hour. Leave the ttl out.",
      });
    }
  }
}

/** Levels of a body at which a cache is asked for: a message, its blocks, those within them, and those within a document of these. */
const maxDepth = 9;

function hasLongCache(value: JsonValue, isControl: boolean, depth: number): boolean {
  if (typeof value !== "object" || value === null || depth > maxDepth) return false;
  if (Array.isArray(value)) return value.some((one) => hasLongCache(one, false, depth + 1));
  if (isControl) return value.ttl === "1h";
  return ["cache_control", "content", "source"].some((name) =>
    hasLongCache(value[name] ?? null, name === "cache_control", depth + 1),
  );
}
