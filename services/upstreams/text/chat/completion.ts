// Translates a whole answer of Responses into a chat completion. `from-responses.ts` translates a stream.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { only } from "../allowed.ts";
import type { Ending } from "../port.ts";
import { isText } from "../responses/complete-item.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { chatUsageOf } from "../usage.ts";
import { stateBeside, stateOfItems } from "./kept-state.ts";
import { StopSearch } from "./stops.ts";
import { completionFields } from "./visible-fields.ts";

/** Why a choice ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** How an answer with this reason ends. */
export function endingOfFinish(finish: unknown): Ending {
  return finish === "length" || finish === "content_filter" ? "incomplete" : "completed";
}

/** The reason in a complete response object. */
export function finishReasonOf(response: JsonObject, hasCalls: boolean): FinishReason {
  if (response.status === "incomplete") {
    const details = response.incomplete_details;
    const reason = isJsonObject(details) ? details.reason : undefined;
    return reason === "content_filter" ? "content_filter" : "length";
  }
  return hasCalls ? "tool_calls" : "stop";
}

/**
 * A chat completion made from the answer of `readResponse`, with its text cut at the first of `stops`. A failed response has no such
 * form, and is answered unchanged.
 */
export function toCompletion(
  answer: ReadAnswer,
  id: string,
  stops: readonly string[] = [],
): ReadAnswer {
  // The usage of a failed answer is charged too. The caller gets the failure alone.
  if (answer.ending === "failed") return answer;
  const response = answer.object;
  const whole = (response.output as JsonObject[]) ?? [];
  const output = outputUpTo(stops, whole);
  const isStopped = output !== whole;
  const calls = output.flatMap(toolCallOf);
  const usage = chatUsageOf(response.usage);
  const object: JsonObject = {
    id,
    object: "chat.completion",
    created: response.created_at ?? 0,
    model: response.model ?? "",
    choices: [
      {
        index: 0,
        message: messageOf(output, calls),
        logprobs: logprobsOf(output),
        finish_reason: isStopped ? "stop" : finishReasonOf(response, calls.length > 0),
      },
    ],
    ...(usage ? { usage } : {}),
    service_tier: response.service_tier ?? "default",
    system_fingerprint: null,
  };
  return { ...answer, object: only(object, completionFields) };
}

/** The items up to the first stop sequence in their text. The same list where there is none. */
function outputUpTo(stops: readonly string[], output: JsonObject[]): JsonObject[] {
  if (stops.length === 0) return output;
  const search = new StopSearch(stops);
  const texts = output
    .filter(({ type }) => type === "message")
    .flatMap(partsOf)
    .map(textOfPart);
  const shown = texts.reduce((length, text) => length + search.take(text).length, 0);
  if (!search.isFound) return output;
  const kept: JsonObject[] = [];
  let left = shown;
  for (const item of output) {
    const isMessage = item.type === "message";
    kept.push(isMessage ? { ...item, content: partsUpTo(left, partsOf(item)) } : item);
    if (!isMessage) continue;
    left -= partsOf(item).reduce((length, part) => length + textOfPart(part).length, 0);
    // The item that holds the sequence is the last one.
    if (left < 0) break;
  }
  return kept;
}

/** Parts with at most `characters` characters of text, and only the log probabilities of that text. */
function partsUpTo(characters: number, parts: readonly JsonObject[]): JsonObject[] {
  let left = characters;
  return parts.map((part) => {
    if (part.type !== "output_text") return part;
    const text = textOfPart(part).slice(0, Math.max(0, left));
    left -= textOfPart(part).length;
    let room = text.length;
    const isWithin = (token: JsonValue) => {
      room -= isJsonObject(token) && typeof token.token === "string" ? token.token.length : 0;
      return room >= 0;
    };
    const logprobs = Array.isArray(part.logprobs) ? part.logprobs.filter(isWithin) : [];
    return { ...part, text, annotations: [], logprobs };
  });
}

function textOfPart(part: JsonObject): string {
  return part.type === "output_text" && typeof part.text === "string" ? part.text : "";
}

/** Texts of a reasoning item: the reasoning, or its summaries where there is nothing else. */
export function thoughtsOf(item: JsonObject): string[] {
  const textsOf = (parts: JsonValue | undefined) =>
    (Array.isArray(parts) ? parts : []).flatMap((part) =>
      isJsonObject(part) && isText(part.text) ? [part.text] : [],
    );
  const thought = textsOf(item.content);
  return thought.length > 0 ? thought : textsOf(item.summary);
}

/** A call in the form of `tool_calls`. Empty for other items. */
export function toolCallOf(item: JsonObject): JsonObject[] {
  const id = item.call_id ?? "";
  const name = item.name ?? "";
  if (item.type === "function_call") {
    const called = { name, arguments: item.arguments ?? "" };
    return [{ id, type: "function", function: called, ...stateBeside(item) }];
  }
  if (item.type === "custom_tool_call") {
    const called = { name, input: item.input ?? "" };
    return [{ id, type: "custom", custom: called, ...stateBeside(item) }];
  }
  return [];
}

/** `url_citation` in the nested form of Chat Completions. Empty for other annotations. */
export function annotationOf(annotation: JsonValue | undefined): JsonObject[] {
  if (!isJsonObject(annotation) || annotation.type !== "url_citation") return [];
  const { type, ...citation } = annotation;
  return [{ type, url_citation: citation }];
}

function messageOf(output: readonly JsonObject[], calls: JsonObject[]): JsonObject {
  const parts = output.filter(({ type }) => type === "message").flatMap(partsOf);
  const texts = parts.flatMap((part) => (part.type === "output_text" ? [part.text ?? ""] : []));
  const refusals = parts.flatMap((part) => (isText(part.refusal) ? [part.refusal] : []));
  const annotations = parts.flatMap(({ annotations: found }) =>
    Array.isArray(found) ? found.flatMap(annotationOf) : [],
  );
  const thoughts = output.filter(({ type }) => type === "reasoning").flatMap(thoughtsOf);
  return {
    role: "assistant",
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join("\n\n") } : {}),
    // Null where the model only called tools, or refused.
    content: texts.length > 0 || calls.length + refusals.length === 0 ? texts.join("") : null,
    refusal: refusals.length > 0 ? refusals.join("") : null,
    annotations,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...stateOfItems(output),
  };
}

function logprobsOf(output: readonly JsonObject[]): JsonValue {
  const content = output.flatMap(partsOf).flatMap(({ logprobs }) => logprobs ?? []);
  return content.length > 0 ? { content, refusal: null } : null;
}

function partsOf(item: JsonObject): JsonObject[] {
  return Array.isArray(item.content) ? item.content.filter(isJsonObject) : [];
}
