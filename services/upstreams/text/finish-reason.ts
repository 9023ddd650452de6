// Finds the reason why an answer ended, in OpenAI's words, for the records of requests and for telemetry.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { JsonAnswer } from "./port.ts";

/** The reason's place in the last event of a chat stream, or in a chat completion, is unknown. This many bytes are searched for it. */
const reasonWithinBytes = 64 * 1_024;

/**
 * The reason why an answer ended, in OpenAI's words: as in the answer, or as its end means. Empty where the end has none. A name in
 * quotes cannot be in a text of JSON, because quotes within texts are escaped.
 */
export function finishReasonOf(answer: JsonAnswer["body"] | undefined, kind: string): string {
  const { told, why } =
    answer instanceof Uint8Array || !answer ? reasonsWithin(answer) : reasonsOf(answer);
  if (told) return told;
  if (kind === "completed") return "stop";
  if (kind !== "incomplete") return "";
  return why === "content_filter" ? why : "length";
}

interface Reasons {
  /** The reason of a chat completion. */
  told: string | undefined;
  /** The reason why a response is incomplete. */
  why: string | undefined;
}

/** The reasons that an answer gives. Words of other forms are none. */
function reasonsOf({ choices, incomplete_details: details, stop_reason }: JsonObject): Reasons {
  const choice = Array.isArray(choices) ? choices[0] : undefined;
  const ofChoice = isJsonObject(choice) ? wordIn(choice.finish_reason) : undefined;
  return {
    told: stop_reason ? wordOfMessages[`${stop_reason}`] : ofChoice,
    why: isJsonObject(details) ? wordIn(details.reason) : undefined,
  };
}

/** Reasons of Messages that say more than the kind of the end. */
const wordOfMessages: Readonly<Record<string, string>> = {
  refusal: "content_filter",
  tool_use: "tool_calls",
};

function wordIn(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && /^[a-z_]{1,40}$/.test(value) ? value : undefined;
}

function reasonsWithin(bytes: Uint8Array | undefined): Reasons {
  const tail = bytes ? latin1(bytes.subarray(-reasonWithinBytes)) : "";
  return {
    told:
      /"finish_reason":\s?"([a-z_]{1,40})"/.exec(tail)?.[1] ??
      wordOfMessages[/"stop_reason":"([a-z_]{1,40})"/.exec(tail)?.[1] ?? ""],
    why: /"incomplete_details":\s?\{\s?"reason":\s?"([a-z_]{1,40})"/.exec(tail)?.[1],
  };
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
