import type { Ending } from "../../upstreams/text/port.ts";
import type { EndKind } from "../metering/charge.ts";

/** Where in the last event of a chat stream, or a chat completion, the reason stands is not known: so much is looked through. */
const reasonWithinBytes = 64 * 1_024;

/**
 * Why an answer ended, in OpenAI's words: as the answer says, or as its end means. Empty where that says nothing. A name in quotes
 * stands in no text of JSON: quotes within texts are escaped.
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
