import { isJsonObject } from "#kit/json.ts";
import type { AnswerForm } from "../request/parse.ts";
import type { TextOperation } from "../upstream/port.ts";
import { replayedEvents } from "../upstream/replay.ts";
import { doneFrame } from "./frames.ts";

/** A kept answer as the event stream that it would have been, `[DONE]` included. Compaction has none. */
export function eventsOfAnswer(
  operation: TextOperation,
  form: AnswerForm,
  answer: Uint8Array,
): Uint8Array {
  const value: unknown = JSON.parse(Buffer.from(answer).toString());
  if (!isJsonObject(value) || operation === "compact") throw new TypeError("no answer to stream");
  const events = replayedEvents(operation, value, { withUsage: form === "events+usage" });
  return Buffer.concat([...events.map((event) => event.frame), doneFrame]);
}
