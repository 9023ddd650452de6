import type { JsonObject } from "#kit/json.ts";
import { toCompletion } from "../chat/completion.ts";
import { ChatFromResponses } from "../chat/from-responses.ts";
import { toResponsesRequest } from "../chat/request.ts";
import type { UpstreamsContext } from "../context.ts";
import { factsOf, type RequestFacts } from "../facts.ts";
import { type Driver, jsonAnswer } from "../http-driver.ts";
import { ignoredParameters } from "../ignored.ts";
import { withOutputLimit } from "../output-limit.ts";
import type { AnswerEvent, UpstreamRequest } from "../port.ts";
import { readCompaction, readResponse } from "../responses/json-answer.ts";
import { wholeAnswerEvents } from "../responses/whole-answer.ts";
import { wholeEvents } from "../responses/whole-events.ts";
import { answerOf, compactionOf } from "./answer.ts";
import { paced } from "./pace.ts";
import { splitWords } from "./split.ts";
import { createThinker } from "./thinker.ts";

/** The driver of `builtin`: text made in process, the same for the same input, at the upstream's pace. */
export function createBuiltinDriver(
  context: Pick<UpstreamsContext, "clock" | "ids">,
): { drive: Driver } & AsyncDisposable {
  const thinker = createThinker(context);
  const drive: Driver = async (request, upstream) => {
    // It is its own upstream: from here on it is at work.
    request.onSent?.();
    const facts = factsOf(request, context);
    const { newId } = facts.response;
    const isChat = request.operation === "chat";
    const asked = isChat ? toResponsesRequest(request.body, request.passParameters) : request.body;
    const body = withOutputLimit(asked, request.maxOutputTokens, "responses");
    request.onIgnored?.(ignoredParameters(request, body, "/responses"));
    if (request.operation === "compact") {
      const found = compactionOf(await thinker.remember(body, request), newId);
      return jsonAnswer(readCompaction(found, facts.response), upstream.name);
    }
    const thought = await thinker.think(body, request);
    const answer = readResponse(answerOf(body, thought, newId), facts.response);
    if (!request.stream) {
      const whole = isChat ? toCompletion(answer, facts.chat.id, facts.chat.stops) : answer;
      return jsonAnswer(whole, upstream.name);
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
  return { drive, [Symbol.asyncDispose]: () => thinker[Symbol.asyncDispose]() };
}

/** The answer's events in the format of the operation. */
function publicEvents(
  response: JsonObject,
  { operation }: UpstreamRequest,
  facts: RequestFacts,
): Iterable<AnswerEvent> {
  if (operation === "responses") return wholeAnswerEvents(response, splitWords);
  return chatEvents(response, facts);
}

function* chatEvents(response: JsonObject, facts: RequestFacts): Iterable<AnswerEvent> {
  const chat = new ChatFromResponses(facts.chat);
  for (const event of wholeEvents(response, splitWords)) {
    const out: AnswerEvent[] = [];
    chat.take(event, out);
    yield* out;
  }
}
