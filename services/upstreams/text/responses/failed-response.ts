import { errorRow, type Reason } from "#kit/errors.ts";
import type { JsonObject } from "#kit/json.ts";

/** A complete response object as failed, in our words. */
export function failedResponse(response: JsonObject, reason: Reason): JsonObject {
  const { code, message } = errorRow(reason);
  return {
    ...response,
    status: "failed",
    completed_at: null,
    incomplete_details: null,
    error: { code, message },
  };
}
