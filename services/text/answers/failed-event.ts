// Writes the last event of a stream that genmesh breaks off, in the form of each protocol. Without it a client would wait for
// more.

import { errorRow, type Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { dataFrame, errorBody, typedFrame } from "../../upstreams/text/frame.ts";
import { errorEvent } from "../../upstreams/text/messages/error-event.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import { dataOf } from "../base/frames.ts";

/**
 * The last event of a stream that genmesh breaks off itself. Chat: an error chunk. Messages: an error event. Responses: `response.failed` with the response
 * object of the stream's first event. `sequence`: the number of events before it.
 */
export function failedEvent(
  operation: TextOperation,
  reason: Reason,
  firstFrame: Uint8Array | undefined,
  sequence: number,
): Uint8Array {
  if (operation === "chat") return dataFrame({ error: errorBody(reason) });
  if (operation === "messages") return errorEvent(reason);
  const first = firstFrame && dataOf(firstFrame)?.response;
  const response: JsonObject = isJsonObject(first) ? first : { object: "response" };
  const { code, message } = errorRow(reason);
  return typedFrame({
    type: "response.failed",
    sequence_number: sequence,
    response: { ...response, status: "failed", error: { code, message } },
  });
}
