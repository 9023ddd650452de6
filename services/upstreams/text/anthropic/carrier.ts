// Packs a thinking block of Anthropic's into the sealed state of a Responses item, and unpacks it in the next turn.
// `../messages/carrier.ts` does the reverse.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { anyObjectIn } from "../../call.ts";

/**
 * Thinking of Messages must come back as it was made, with its signature. Callers of other protocols carry it as the sealed state of an
 * item of reasoning: `gmt1.` and the block's own fields in base64url. The text is within, because callers may change or drop what an
 * item shows.
 */
const prefix = "gmt1.";

/** Is it state in this form? */
export function isCarrier(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(prefix);
}

/** A thinking block as sealed state. Undefined where it has no signature, and so cannot come back. */
export function carrierOf({ type, signature, thinking, data }: JsonObject): string | undefined {
  if (type === "redacted_thinking") return isFull(data) ? sealed({ data }) : undefined;
  if (!isFull(signature)) return undefined;
  return sealed({ signature, thinking: typeof thinking === "string" ? thinking : "" });
}

/** The block that a carrier was made of. Undefined for state of any other kind. */
export function blockOf(carrier: unknown): JsonObject | undefined {
  if (!isCarrier(carrier)) return undefined;
  const found = anyObjectIn(Buffer.from(carrier.slice(prefix.length), "base64url"));
  if (!isJsonObject(found)) return undefined;
  const { signature, thinking, data } = found;
  if (isFull(data)) return { type: "redacted_thinking", data };
  if (!isFull(signature) || typeof thinking !== "string") return undefined;
  return { type: "thinking", thinking, signature };
}

function sealed(fields: JsonObject): string {
  return prefix + Buffer.from(JSON.stringify(fields)).toString("base64url");
}

function isFull(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
