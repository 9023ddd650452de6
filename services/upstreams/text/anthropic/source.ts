// Writes an image or a PDF as the source of one of Anthropic's blocks.

import type { JsonObject } from "#kit/base/json.ts";

/** The source of an image or a PDF: an address, or the bytes of a data URI. */
export function sourceOf(uri: string): JsonObject {
  const comma = uri.startsWith("data:") ? uri.indexOf(",") : -1;
  if (comma === -1) return { type: "url", url: uri };
  const [type = ""] = uri.slice("data:".length, comma).split(";");
  return { type: "base64", media_type: type, data: uri.slice(comma + 1) };
}
