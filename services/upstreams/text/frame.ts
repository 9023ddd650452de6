// Writes server-sent events in the forms of the public protocols.

import { errorRow, type Reason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";

/** An event of the Responses stream as bytes. Its `event:` line is its `type`. */
export function typedFrame(event: JsonObject): Buffer {
  return Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** The same, for data that is JSON on one line already. */
export function typedFrameOf(type: string, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`event: ${type}\ndata: `), data, Buffer.from("\n\n")]);
}

/** An event without a name, in the form of the Chat Completions stream. */
export function dataFrame(value: JsonObject): Buffer {
  return Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
}

/** The `error` of a stream that failed after it had begun: the words of genmesh for a reason. */
export function errorBody(reason: Reason): JsonObject {
  const { message, type, code } = errorRow(reason);
  return { message, type, param: null, code };
}
