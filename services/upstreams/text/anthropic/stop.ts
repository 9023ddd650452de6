// Translates the reason why an answer of Messages ended.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** How an answer ended, in the fields of a response. */
export interface Stop {
  status: "completed" | "incomplete" | "failed";
  fields: JsonObject;
  /** The words of a refusal, which are a part of the answer. Absent: none. */
  refusal?: string;
}

const tooLong = { incomplete_details: { reason: "max_output_tokens" } };

/** The end that a message reports. Undefined where it reports none, and so is not over. */
export function stopOf(reason: JsonValue | undefined, details?: JsonValue): Stop | undefined {
  switch (reason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return { status: "incomplete", fields: tooLong };
    case "refusal": {
      const words = isJsonObject(details) ? details.explanation : undefined;
      return {
        status: "incomplete",
        fields: { incomplete_details: { reason: "content_filter" } },
        ...(typeof words === "string" && words !== "" && { refusal: words }),
      };
    }
    case "pause_turn":
      // A tool of the host has more to do. No translated request has one.
      return { status: "failed", fields: { error: { code: "server_error" } } };
    default:
      // New reasons are ends too.
      return typeof reason === "string" ? { status: "completed", fields: {} } : undefined;
  }
}
