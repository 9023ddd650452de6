// Makes a stream of an answer that was kept, for a repeated request that asks for one.

import type { JsonObject } from "#kit/base/json.ts";
import { NativeChat } from "./chat/native.ts";
import { typedFrame } from "./frame.ts";
import { eventsOfMessage } from "./messages/message.ts";
import type { AnswerEvent } from "./port.ts";
import { wholeEventsBy } from "./read-whole.ts";
import { wholeAnswerEvents } from "./responses/whole-answer.ts";

/**
 * The events of the stream that would have given a complete public answer (the object of a `JsonAnswer`'s body). They are for a caller
 * that asks for a stream of a kept answer. A compaction is never a stream.
 */
export function replayedEvents(
  operation: "responses" | "chat" | "messages",
  answer: JsonObject,
  { withUsage }: { withUsage: boolean },
): readonly AnswerEvent[] {
  if (operation === "responses") return [...wholeAnswerEvents(answer)];
  if (operation === "messages") {
    return [...eventsOfMessage(answer)].map((event) => ({ frame: typedFrame(event), text: "" }));
  }
  const { id, created, model } = answer;
  const nowS = () => (typeof created === "number" ? created : 0);
  return wholeEventsBy(
    answer,
    new NativeChat({ id: `${id}`, modelId: `${model}`, nowS, withUsage }),
  );
}
