// Leaves results of Anthropic's tools out of a conversation where their sealed state came from another upstream. Anthropic would
// refuse the whole request.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { sealedIn } from "../../upstreams/text/anthropic/sealed.ts";
import { hostBlocks, hostCall, hostResults } from "../../upstreams/text/host-tools.ts";

/**
 * The messages without what Anthropic may not get of the results of its tools. A result goes together with its call, and a citation
 * alone. `isForeign`: is it state that may not be sent?
 */
export function withoutResults(
  messages: readonly JsonValue[],
  isForeign: (state: JsonValue | undefined) => boolean,
): JsonValue[] {
  const isSealed = (value: JsonValue) => sealedIn(value).some((one) => isForeign(one.value));
  const calls = new Set<JsonValue | undefined>();
  for (const block of messages.flatMap(blocksIn)) {
    if (hostResults.has(block.type) && isSealed(block)) calls.add(block.tool_use_id);
  }
  const kept = (block: JsonValue): JsonValue[] => {
    if (!isJsonObject(block)) return [block];
    if (hostBlocks.has(block.type) && idsOf(block).some((id) => calls.has(id))) return [];
    const { citations, ...rest } = block;
    if (block.type !== "text" || !Array.isArray(citations) || !isSealed(citations)) return [block];
    const own = citations.filter((one) => !isSealed(one));
    return [own.length > 0 ? { ...rest, citations: own } : rest];
  };
  return messages.flatMap((message) => {
    if (!isJsonObject(message) || !Array.isArray(message.content)) return [message];
    const content = message.content.flatMap(kept);
    return content.length > 0 || message.content.length === 0 ? [{ ...message, content }] : [];
  });
}

/** The call that a block is of, and that of the code which made it. */
function idsOf({ type, id, tool_use_id: call, caller }: JsonObject): (JsonValue | undefined)[] {
  const { tool_id: code } = isJsonObject(caller) ? caller : {};
  return [type === hostCall ? id : call, code].filter((one) => one !== undefined);
}

function blocksIn(message: JsonValue): JsonObject[] {
  if (!isJsonObject(message) || !Array.isArray(message.content)) return [];
  return message.content.filter(isJsonObject);
}
