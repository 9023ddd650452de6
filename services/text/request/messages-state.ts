// Notes and leaves out thinking, whose signature only its maker can read. So a conversation can go on at another upstream or
// model.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { sealedIn } from "../../upstreams/text/anthropic/sealed.ts";
import { carriedIn, isCarrier } from "../../upstreams/text/messages/carrier.ts";
import type { OpaquePart } from "./checked.ts";
import { withoutResults } from "./messages-results.ts";

/** Types of blocks that the catalog adds at each of these upstreams, so that any of them can be asked. */
export function addedTypesOf([first, ...others]: readonly Upstream[]): ReadonlySet<string> {
  const isEverywhere = (type: string) =>
    others.every(({ blockTypes }) => blockTypes.includes(type));
  return new Set(first?.blockTypes.filter(isEverywhere));
}

/**
 * Notes state that only its maker can read. To an upstream of another protocol, a Claude's own signature means nothing, and only state
 * that was made here can be sent.
 */
export function noteState(
  value: JsonValue | undefined,
  at: string,
  param: string,
  { opaque, isNative }: { opaque: OpaquePart[]; isNative: boolean },
): void {
  if (typeof value !== "string" || value === "" || isCarrier(value) === isNative) return;
  const path = param.replaceAll("[", ".").replaceAll("]", "");
  const message = `${path}: Invalid \`signature\` in \`thinking\` block`;
  opaque.push({ value, param: at, carried: { message } });
}

/**
 * Takes thinking, and results of Anthropic's tools, out of a body that may not be sent: those of other upstreams and models. Thinking
 * without a signature has no state. A message with nothing else is left out too, because none may be empty. `natives`: the upstreams
 * that speak Messages themselves, if it goes to those alone.
 */
export function leaveThinkingOut(
  body: JsonObject,
  foreign: ReadonlySet<string>,
  natives: readonly Upstream[],
): void {
  const isNative = natives.length > 0;
  const added = addedTypesOf(natives);
  const isForeign = (state: JsonValue | undefined) =>
    typeof state === "string" && foreign.has(state);
  const isKept = (block: JsonValue) => {
    if (!isJsonObject(block)) return true;
    if (added.has(`${block.type}`)) return !sealedIn(block).some(({ value }) => isForeign(value));
    // Without its data it says nothing to another protocol.
    if (block.type === "redacted_thinking") return isNative && !isForeign(block.data);
    if (block.type !== "thinking") return true;
    const { signature } = block;
    if (isForeign(signature)) return false;
    if (isNative) return isOfClaude(signature);
    return signature === "" || carriedIn(signature) !== undefined;
  };
  const { messages } = body;
  if (!Array.isArray(messages)) return;
  body.messages = messages.filter((message) => {
    if (!isJsonObject(message) || !Array.isArray(message.content)) return true;
    const { length } = message.content;
    message.content = message.content.filter(isKept);
    return length === 0 || message.content.length > 0;
  });
  if (isNative && foreign.size > 0) body.messages = withoutResults(body.messages, isForeign);
}

/** Is it a signature of an upstream that speaks Messages? A carrier is state of another upstream. */
function isOfClaude(signature: JsonValue | undefined): boolean {
  return typeof signature === "string" && signature !== "" && !isCarrier(signature);
}
