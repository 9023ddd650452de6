import type { Ending } from "../../upstreams/text/port.ts";
import type { EndKind } from "../metering/charge.ts";

/** The reason's place in the last event of a chat stream, or in a chat completion, is unknown. This many bytes are searched for it. */
const reasonWithinBytes = 64 * 1_024;

/**
 * The reason why an answer ended, in OpenAI's words: as in the answer, or as its end means. Empty where the end has none. A name in
 * quotes cannot be in a text of JSON, because quotes within texts are escaped.
 */
export function finishReasonOf(bytes: Uint8Array | undefined, kind: EndKind | Ending): string {
  const tail = bytes ? latin1(bytes.subarray(-reasonWithinBytes)) : "";
  const told = /"finish_reason":\s?"([a-z_]{1,40})"/.exec(tail)?.[1];
  if (told) return told;
  if (kind === "completed") return "stop";
  if (kind !== "incomplete") return "";
  const reason = /"incomplete_details":\s?\{\s?"reason":\s?"([a-z_]{1,40})"/.exec(tail)?.[1];
  return reason === "content_filter" ? reason : "length";
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
