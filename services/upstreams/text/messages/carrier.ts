// Packs the sealed state of a Responses item into the signature of a thinking block, and unpacks it in the next turn.
// `../anthropic/carrier.ts` does the reverse.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";

/** The beginning of a signature that carries an item of reasoning. A Claude's own signature begins otherwise. */
const mark = "gmr1.";

/**
 * An item of reasoning as the `signature` of a thinking block, which callers send back unchanged. Its text is not within it. Undefined
 * for an item without state.
 */
export function carrierOf({ id, encrypted_content: state }: JsonObject): string | undefined {
  if (typeof state !== "string" || state === "") return undefined;
  const carried = { ...(typeof id === "string" ? { id } : {}), encrypted_content: state };
  return mark + Buffer.from(JSON.stringify(carried)).toString("base64url");
}

/** Is it a signature that was made here? Only its hash shows whether it is whole. */
export function isCarrier(signature: unknown): signature is string {
  return typeof signature === "string" && signature.startsWith(mark);
}

/** The fields of the item in a signature. Undefined where it holds none. */
export function carriedIn(signature: unknown): JsonObject | undefined {
  if (!isCarrier(signature)) return undefined;
  try {
    const text = Buffer.from(signature.slice(mark.length), "base64url").toString();
    const found: unknown = JSON.parse(text);
    return isJsonObject(found) ? found : undefined;
  } catch {
    return undefined;
  }
}
