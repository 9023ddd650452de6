// Drives the built-in text model as if it were an upstream. services/builtin makes the answer, and this file puts it into every
// format.

import type { BuiltinText } from "#common/words/builtin-models.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { type StopSignal, signalOf } from "#kit/base/stop.ts";
import type { Clock } from "#kit/time/clock.ts";
import { factsOf, type RequestFacts } from "../text/answer-defaults.ts";
import { toCompletion } from "../text/chat/completion.ts";
import { ChatFromResponses } from "../text/chat/from-responses.ts";
import { toResponsesRequest } from "../text/chat/request.ts";
import type { UpstreamsContext } from "../text/context.ts";
import { type Driver, jsonAnswer } from "../text/http-driver.ts";
import { ignoredParameters, leftBetas } from "../text/ignored.ts";
import { toMessage } from "../text/messages/answer.ts";
import { MessagesFromResponses } from "../text/messages/from-responses.ts";
import { responsesOfMessages } from "../text/messages/request.ts";
import { withOutputLimit } from "../text/output-limit.ts";
import type { AnswerEvent, UpstreamRequest } from "../text/port.ts";
import type { ReadAnswer } from "../text/responses/json-answer.ts";
import { readCompaction, readResponse } from "../text/responses/json-answer.ts";
import { wholeAnswerEvents, wholeEvents } from "../text/responses/whole-answer.ts";
import type { TranslatedReader } from "../text/translated-reader.ts";

/** The driver of `builtin`. A model in this process makes a whole answer, which the driver streams at the upstream's pace. */
export function createBuiltinDriver(
  context: Pick<UpstreamsContext, "clock" | "ids">,
  model: BuiltinText,
): Driver {
  return async (request, upstream) => {
    // The model is its own upstream, and works from here on.
    request.onSent?.();
    const facts = factsOf(request, context);
    const asked = responsesOf(request);
    const body = withOutputLimit(asked, request.maxOutputTokens, "responses");
    const leftOut = [
      ...(request.leftOut ?? []),
      ...(request.betas ? leftBetas(request.betas, upstream) : []),
    ];
    request.onIgnored?.(ignoredParameters({ ...request, leftOut }, body, "/responses"));
    const caller = { accountId: request.accountId, signal: signalOf(request.signal) };
    if (request.operation === "compact") {
      const found = await model.compact(body, caller);
      return jsonAnswer(readCompaction(found, facts.response), upstream.name);
    }
    const answer = readResponse(await model.respond(body, caller), facts.response);
    if (!request.stream) {
      return jsonAnswer(publicAnswer(answer, request, facts), upstream.name);
    }
    const { clock } = context;
    const { signal } = request;
    const delayMs = upstream.tokenDelayMs;
    const events = publicEvents(answer.object, request, facts);
    return {
      kind: "stream",
      batches: paced(events, { clock, signal, delayMs }),
      upstream: upstream.name,
    };
  };
}

/** The request in the format of Responses. */
function responsesOf({ operation, body, passParameters }: UpstreamRequest): JsonObject {
  switch (operation) {
    case "chat":
      return toResponsesRequest(body, passParameters);
    case "messages":
      return responsesOfMessages(body);
    default:
      return body;
  }
}

/** The answer in the format of the operation. */
function publicAnswer(
  answer: ReadAnswer,
  { operation }: UpstreamRequest,
  facts: RequestFacts,
): ReadAnswer {
  switch (operation) {
    case "chat":
      return toCompletion(answer, facts.chat.id, facts.chat.stops);
    case "messages":
      return toMessage(answer, facts.message());
    default:
      return answer;
  }
}

/** The answer's events in the format of the operation. */
function publicEvents(
  response: JsonObject,
  { operation }: UpstreamRequest,
  facts: RequestFacts,
): Iterable<AnswerEvent> {
  if (operation === "responses") return wholeAnswerEvents(response, splitWords);
  const isChat = operation === "chat";
  const reader = isChat
    ? new ChatFromResponses(facts.chat)
    : new MessagesFromResponses(facts.message());
  return translatedEvents(response, reader);
}

function* translatedEvents(response: JsonObject, reader: TranslatedReader): Iterable<AnswerEvent> {
  for (const event of wholeEvents(response, splitWords)) {
    const out: AnswerEvent[] = [];
    reader.take(event, out);
    reader.settle(out);
    yield* out;
  }
}

/** Words with the space before them, long ones in pieces, then punctuation, then the remaining spaces. */
const pieces = /\s*[\p{L}\p{M}\p{N}]{1,12}|\s*[^\s\p{L}\p{N}]|\s+/gu;

/** Cuts a text into deltas of about a token. Joined, they are the text. */
function splitWords(text: string): readonly string[] {
  return text.match(pieces) ?? [];
}

/** The pace of events. */
interface Pace {
  clock: Clock;
  signal: StopSignal;
  /** Milliseconds before each event with text. 0: none. */
  delayMs: number;
}

/** Events of one batch where there is no pace. That is enough to be cheap, and few enough to stop in between. */
const batchEvents = 32;

/** Gives events in batches, at a pace. Throws only the signal's reason. */
async function* paced(
  events: Iterable<AnswerEvent>,
  { clock, signal, delayMs }: Pace,
): AsyncGenerator<readonly AnswerEvent[]> {
  let batch: AnswerEvent[] = [];
  for (const event of events) {
    signal.throwIfAborted();
    const isDue = delayMs > 0 && event.text !== "";
    if (batch.length > 0 && (isDue || batch.length >= batchEvents)) {
      yield batch;
      batch = [];
    }
    if (isDue) {
      await clock.sleep(delayMs, signalOf(signal)).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      });
    }
    batch.push(event);
  }
  signal.throwIfAborted();
  if (batch.length > 0) yield batch;
}
