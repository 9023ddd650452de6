import type { JsonObject } from "#kit/base/json.ts";
import type { AnswerEvent } from "../port.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { type MessageFacts, MessagesFromResponses } from "./from-responses.ts";
import { MessageCollector } from "./message.ts";

/** A message made from the answer of `readResponse`. A failed response has no such form, and is answered unchanged. */
export function toMessage(answer: ReadAnswer, facts: MessageFacts): ReadAnswer {
  // The usage of a failed answer is charged too. The caller gets the failure alone.
  if (answer.ending === "failed") return answer;
  const collector = new MessageCollector();
  const reader = new MessagesFromResponses(facts, (event) => collector.add(event));
  const response: JsonObject = answer.object;
  const events: AnswerEvent[] = [];
  reader.take({ type: `response.${answer.ending}`, response }, events);
  reader.end("end", events);
  const opaque = events.flatMap((event) => event.opaque ?? []);
  return { ...answer, object: collector.message() ?? {}, opaque };
}
