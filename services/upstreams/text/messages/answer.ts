// Translates a whole answer of Responses or Chat Completions into a message. `from-responses.ts` and `from-chat.ts` translate
// streams.

import type { JsonObject } from "#kit/base/json.ts";
import type { ChatFacts } from "../chat/from-responses.ts";
import { readCompletion } from "../chat/native-json.ts";
import type { AnswerEvent } from "../port.ts";
import { wholeEventsBy } from "../read-whole.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { MessagesFromChat } from "./from-chat.ts";
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

/** A message made from a whole chat completion of an upstream's. Throws `UpstreamFailure` where it is not one. */
export function messageOfCompletion(
  found: JsonObject,
  { chat, message }: CompletionFacts,
): ReadAnswer {
  const answer = readCompletion(found, chat);
  if (answer.ending === "failed") return answer;
  const collector = new MessageCollector();
  const add = (event: JsonObject) => collector.add(event);
  wholeEventsBy(found, new MessagesFromChat(message(), chat.nowS, add));
  return { ...answer, object: collector.message() ?? {}, opaque: [] };
}

/** The facts of a message, and of the chat completion that it is made of. */
interface CompletionFacts {
  chat: ChatFacts;
  message: () => MessageFacts;
}
