import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { Ending } from "../port.ts";
import { isText } from "../responses/complete-item.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { chatUsageOf } from "../usage.ts";

/** Why a choice ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** How an answer with this reason ended. */
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

/** A chat completion of what `readResponse` gave. A failed response has no such form: it stays what it is. */
export function toCompletion(answer: ReadAnswer, id: string): ReadAnswer {
  // Its usage is charged all the same, and the caller is told of the failure alone.
  if (answer.ending === "failed") return answer;
  const response = answer.object;
  const output = (response.output as JsonObject[]) ?? [];
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
        finish_reason: finishReasonOf(response, calls.length > 0),
      },
    ],
    ...(usage ? { usage } : {}),
    service_tier: response.service_tier ?? "default",
    system_fingerprint: null,
  };
  return { ...answer, object };
}

/** A call as `tool_calls` has it; nothing for other items. */
export function toolCallOf(item: JsonObject): JsonObject[] {
  const id = item.call_id ?? "";
  const name = item.name ?? "";
  if (item.type === "function_call") {
    return [{ id, type: "function", function: { name, arguments: item.arguments ?? "" } }];
  }
  if (item.type === "custom_tool_call") {
    return [{ id, type: "custom", custom: { name, input: item.input ?? "" } }];
  }
  return [];
}

/** `url_citation` in the nested form of Chat Completions; nothing for other annotations. */
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
  return {
    role: "assistant",
    // Null where the model said nothing but called, or refused.
    content: texts.length > 0 || calls.length + refusals.length === 0 ? texts.join("") : null,
    refusal: refusals.length > 0 ? refusals.join("") : null,
    annotations,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function logprobsOf(output: readonly JsonObject[]): JsonValue {
  const content = output.flatMap(partsOf).flatMap(({ logprobs }) => logprobs ?? []);
  return content.length > 0 ? { content, refusal: null } : null;
}

function partsOf(item: JsonObject): JsonObject[] {
  return Array.isArray(item.content) ? item.content.filter(isJsonObject) : [];
}
