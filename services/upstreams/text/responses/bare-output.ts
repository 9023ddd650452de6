// Recognizes the output that most answers have: whole messages of text and nothing else. Then nothing in it must be searched,
// hidden or completed.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { textLimits } from "../limits.ts";

const itemFields: ReadonlySet<string> = new Set(["id", "type", "status", "role", "content"]);
const partFields: ReadonlySet<string> = new Set(["type", "text", "annotations", "logprobs"]);

/**
 * The text of an answer whose output is messages with parts of text, each with all fields that clients need and no other. Undefined for
 * any other answer. Reasoning, calls and sealed state are items or fields of other names, so such an answer holds none. It also keeps to
 * the number of pieces that an answer may have.
 */
export function bareText({ choices, content, output }: JsonObject): string | undefined {
  if (!Array.isArray(output) || choices !== undefined || content !== undefined) return undefined;
  let text = "";
  let pieces = 0;
  for (const item of output) {
    if (!isJsonObject(item) || item.type !== "message" || !Array.isArray(item.content)) {
      return undefined;
    }
    const { id, role, status } = item;
    if (typeof id !== "string" || id === "") return undefined;
    if (typeof role !== "string" || typeof status !== "string") return undefined;
    for (const name in item) if (!itemFields.has(name)) return undefined;
    pieces += 1 + item.content.length;
    if (pieces > textLimits.pieces) return undefined;
    for (const part of item.content) {
      if (!isBarePart(part)) return undefined;
      text += part.text;
    }
  }
  return text;
}

function isBarePart(part: JsonValue): part is JsonObject & { text: string } {
  if (!isJsonObject(part) || part.type !== "output_text" || typeof part.text !== "string") {
    return false;
  }
  const { annotations, logprobs } = part;
  if (!Array.isArray(annotations) || annotations.length > 0) return false;
  if (!Array.isArray(logprobs) || logprobs.length > 0) return false;
  for (const name in part) if (!partFields.has(name)) return false;
  return true;
}
