// Reads a whole chat completion of an upstream's for its caller. `native.ts` reads a stream.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { only } from "../allowed.ts";
import { reasonOfError, UpstreamFailure } from "../failure.ts";
import { textOfAnswer } from "../generated-text.ts";
import { opaqueIn } from "../opaque.ts";
import { hasTooManyPieces } from "../pieces.ts";
import { isText } from "../responses/complete-item.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { chatNames, plainUsage, usageIn } from "../usage.ts";
import { callTypeOf, madeCallId } from "./call-pieces.ts";
import { endingOfFinish } from "./completion.ts";
import type { ChatFacts } from "./from-responses.ts";
import { createdOf, errorOfChoice } from "./native.ts";
import { completionFields, plainlySaid } from "./visible-fields.ts";

/** Makes a chat completion of the upstream's complete, with the public model id. Throws `UpstreamFailure` where it is not one. */
export function readCompletion(found: JsonObject, facts: ChatFacts): ReadAnswer {
  const choices = Array.isArray(found.choices) ? found.choices.filter(isJsonObject) : [];
  const first = choices[0];
  if (!first || !isJsonObject(first.message) || hasTooManyPieces(found))
    throw new UpstreamFailure("garbage");
  const broken = errorOfChoice(first);
  const failure = broken && reasonOfError(broken);
  const { id } = facts;
  const completed: JsonObject = {
    ...found,
    choices: choices.map((choice, index) => completeChoice(choice, index, id)),
  };
  const told = usageIn(found);
  if (told) completed.usage = plainUsage(told.object, chatNames);
  const shown = only(completed, completionFields);
  return {
    object: {
      ...shown,
      id,
      object: "chat.completion",
      created: createdOf(found) ?? facts.nowS(),
      model: facts.modelId,
    },
    ending: failure ? "failed" : endingOfFinish(first.finish_reason),
    ...(failure ? { failure } : {}),
    usage: told?.usage,
    outputText: textOfAnswer(completed),
    opaque: opaqueIn(first.message.reasoning_details),
  };
}

function completeChoice(choice: JsonObject, index: number, completionId: string): JsonObject {
  const said = plainlySaid(isJsonObject(choice.message) ? choice.message : {});
  const calls = Array.isArray(said.tool_calls) ? said.tool_calls.filter(isJsonObject) : [];
  const message = { role: "assistant", content: null, refusal: null, ...said };
  const reason = isText(choice.finish_reason) ? choice.finish_reason : "stop";
  return {
    index,
    logprobs: null,
    ...choice,
    message:
      calls.length > 0 ? { ...message, tool_calls: completeCalls(calls, completionId) } : message,
    finish_reason: calls.length > 0 && reason === "stop" ? "tool_calls" : reason,
  };
}

/** Calls with an id, a type, and arguments as text. */
function completeCalls(calls: readonly JsonObject[], completionId: string): JsonObject[] {
  return calls.map(({ index: _, ...call }, at) => {
    const type = callTypeOf(call);
    const said = isJsonObject(call[type]) ? call[type] : {};
    const field = type === "custom" ? "input" : "arguments";
    return {
      ...call,
      id: isText(call.id) ? call.id : madeCallId(completionId, at),
      type,
      [type]: { ...said, [field]: said[field] ?? "" },
    };
  });
}
