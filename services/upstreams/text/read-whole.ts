// Makes a stream of an answer that came whole, for a caller that asked for a stream.

import { turn } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { eventOf } from "#kit/upstream/sse.ts";
import { UpstreamFailure } from "./failure.ts";
import type { LargeParts } from "./large-parts.ts";
import { eventsOfMessage } from "./messages/message.ts";
import type { AnswerEvent, StreamAnswer } from "./port.ts";
import { isText } from "./responses/complete-item.ts";
import type { StreamReader } from "./stream-reader.ts";

/** The stream of an upstream that was asked for a stream and answered as a whole. Throws `UpstreamFailure` where that is no answer. */
export function readWhole(
  found: JsonObject,
  reader: StreamReader,
  { upstream, isCut, parts }: { upstream: string; isCut: boolean; parts: LargeParts },
): StreamAnswer {
  const events = wholeEventsBy(found, reader);
  const last = events.at(-1);
  if (isCut && last?.ending === "incomplete") last.isCut = true;
  return {
    kind: "stream",
    upstream,
    unseen: reader.unseen,
    batches: filled(events, parts),
  };
}

/** All events at once. Where they hold large parts they come one by one, each in a turn of its own. */
async function* filled(events: AnswerEvent[], parts: LargeParts) {
  if (parts.isEmpty) {
    yield events;
    return;
  }
  for (const event of events) {
    yield [{ ...event, frame: parts.fill(event.frame) }];
    await turn();
  }
}

/** All events of a complete answer in the protocol that `reader` reads. */
export function wholeEventsBy(found: JsonObject, reader: StreamReader): AnswerEvent[] {
  const events: AnswerEvent[] = [];
  for (const event of eventsOf(found)) {
    reader.read(eventOf("", Buffer.from(JSON.stringify(event))), events);
  }
  reader.settle(events);
  reader.end("end", events);
  return events;
}

/** The fewest events with the same content. Readers add the others. */
function eventsOf(found: JsonObject): JsonObject[] {
  if (Array.isArray(found.choices)) return chunksOf(found, found.choices);
  if (found.type === "message") return [...eventsOfMessage(found), { type: "message_stop" }];
  const status = found.status ?? "completed";
  const isAnswer = status === "completed" || status === "incomplete";
  if (!(isAnswer && Array.isArray(found.output)) && status !== "failed") {
    throw new UpstreamFailure("garbage");
  }
  return [{ type: `response.${status}`, response: found }];
}

/** One chunk with the output of the first choice, one with the reason for its end, and one with usage. */
function chunksOf(found: JsonObject, choices: JsonValue[]): JsonObject[] {
  const [choice] = choices;
  if (!isJsonObject(choice) || !isJsonObject(choice.message)) throw new UpstreamFailure("garbage");
  const { message: _, finish_reason: reason, ...rest } = choice;
  const delta = { ...choice.message };
  if (Array.isArray(delta.tool_calls)) {
    delta.tool_calls = delta.tool_calls.map((call, index) =>
      isJsonObject(call) ? { ...call, index } : call,
    );
  }
  const { usage, ...fields } = found;
  const head = { ...fields, object: "chat.completion.chunk" };
  const ended = {
    index: 0,
    delta: {},
    logprobs: null,
    finish_reason: isText(reason) ? reason : "stop",
  };
  return [
    { ...head, choices: [{ ...rest, delta, finish_reason: null }] },
    { ...head, choices: [ended], usage: usage ?? null },
  ];
}
