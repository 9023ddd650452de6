// Writes the error with which a Messages stream ends, wherever the stream comes from.

import { messagesErrorOf } from "#common/words/messages-errors.ts";
import { errorRow, type Reason } from "#kit/base/errors.ts";
import { typedFrame } from "../frame.ts";

/** The last event of a Messages stream that broke. It has no `message_stop` behind it. */
export function errorEvent(reason: Reason): Buffer {
  const { message, code } = errorRow(reason);
  const { type } = messagesErrorOf(reason);
  return typedFrame({ type: "error", error: { type, message, code } });
}
