// Reads and joins the frames of server-sent events, for code that looks into a stream. It also writes the frame that ends a
// stream.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { typedFrame } from "../../upstreams/text/frame.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";

const done: Uint8Array = Buffer.from("data: [DONE]\n\n");
const messageStop: Uint8Array = typedFrame({ type: "message_stop" });

/** The frame behind the terminal event of a stream that did not break. */
export function doneFrame(operation: TextOperation): Uint8Array {
  return operation === "messages" ? messageStop : done;
}

/** The JSON object of one event's `data:` lines. Undefined where it is not an object. */
export function dataOf(frame: Uint8Array): JsonObject | undefined {
  const text = Buffer.from(frame.buffer, frame.byteOffset, frame.length).toString();
  const data = text
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(line.startsWith("data: ") ? 6 : 5))
    .join("\n");
  try {
    const value: unknown = JSON.parse(data);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Several frames as one piece. A single frame is not copied. */
export function joinFrames(frames: readonly Uint8Array[]): Uint8Array {
  const [first] = frames;
  return first && frames.length === 1 ? first : Buffer.concat(frames);
}
