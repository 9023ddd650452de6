import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import { maxKeptAnswerBytes } from "../limits.ts";
import type { ChargedTokens } from "../pricing.ts";
import { estimatedUsage } from "../shown-usage.ts";
import type { AnswerEvent, ReportedUsage, TextOperation } from "../upstream/port.ts";
import { dataOf } from "./frames.ts";

/** An answer that is small enough to be kept. */
export function keepable(answer: Uint8Array | undefined): Uint8Array | undefined {
  return answer && answer.length <= maxKeptAnswerBytes ? answer : undefined;
}

/** Makes the JSON answer out of a stream, for the idempotency key. */
export interface Collector {
  add(event: AnswerEvent): void;
  /**
   * The answer, once the terminal event was added, with what we counted in the place of usage that upstream did not
   * report; undefined where the stream did not add up to one.
   */
  answer(
    reported: ReportedUsage | undefined,
    estimate: ChargedTokens | undefined,
  ): Uint8Array | undefined;
}

/** A collector for one stream. */
export function createCollector(operation: TextOperation): Collector {
  return operation === "chat" ? chatCollector() : responseCollector();
}

/** The terminal event of a Responses stream carries the whole response. */
function responseCollector(): Collector {
  let last: AnswerEvent | undefined;
  return {
    add(event) {
      last = event;
    },
    answer(_reported, estimate) {
      const response = last && dataOf(last.frame)?.response;
      if (!isJsonObject(response)) return undefined;
      const usage = estimate ? { usage: estimatedUsage("responses", estimate) } : {};
      return Buffer.from(JSON.stringify({ ...response, ...usage }));
    },
  };
}

function chatCollector(): Collector {
  let head: JsonObject | undefined;
  let usage: JsonValue = null;
  let finish: JsonValue = null;
  let logprobs: JsonObject | null = null;
  const message: JsonObject = { role: "assistant", content: null, refusal: null };
  const addChoice = (choice: JsonObject) => {
    if (choice.finish_reason) finish = choice.finish_reason;
    if (isJsonObject(choice.logprobs)) logprobs = mergeDelta(logprobs ?? {}, choice.logprobs);
    if (isJsonObject(choice.delta)) mergeDelta(message, choice.delta);
  };
  return {
    add({ frame }) {
      const chunk = dataOf(frame);
      if (!chunk) return;
      head ??= chunk;
      if (isJsonObject(chunk.usage)) usage = chunk.usage;
      const choice = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
      if (isJsonObject(choice)) addChoice(choice);
    },
    answer(reported, estimate) {
      if (!head || finish === null) return undefined;
      const { choices: _choices, usage: _usage, ...rest } = head;
      const completion: JsonObject = {
        ...rest,
        object: "chat.completion",
        choices: [{ index: 0, message: finished(message), logprobs, finish_reason: finish }],
        usage: estimate ? estimatedUsage("chat", estimate) : (usage ?? usageOf(reported)),
      };
      return Buffer.from(JSON.stringify(completion));
    },
  };
}

/** Texts are appended, lists merged by `index` (or appended), the rest replaced. Changes and gives back `into`. */
function mergeDelta(into: JsonObject, delta: JsonObject): JsonObject {
  for (const [name, value] of Object.entries(delta)) {
    // JSON may have a field of this name; read as a property it is what every object shares.
    if (value === null || name === "__proto__") continue;
    const old = into[name];
    if (typeof value === "string" && typeof old === "string" && !wholeTexts.has(name)) {
      into[name] = old + value;
    } else if (Array.isArray(value)) {
      into[name] = mergeList(Array.isArray(old) ? old : [], value);
    } else if (isJsonObject(value)) {
      into[name] = mergeDelta(isJsonObject(old) ? old : {}, value);
    } else {
      into[name] = value;
    }
  }
  return into;
}

/** Texts that come in one piece, though some upstreams repeat them in every delta. */
const wholeTexts = new Set(["role", "id", "type", "name"]);

function mergeList(list: JsonValue[], added: readonly JsonValue[]): JsonValue[] {
  for (const value of added) {
    const index = isJsonObject(value) ? value.index : undefined;
    const old = list.find((one) => isJsonObject(one) && index !== undefined && one.index === index);
    if (isJsonObject(value) && isJsonObject(old)) mergeDelta(old, value);
    else list.push(isJsonObject(value) ? mergeDelta({}, value) : value);
  }
  return list;
}

/** Calls in a message have no `index`. */
function finished(message: JsonObject): JsonObject {
  if (!Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call) => {
    if (!isJsonObject(call)) return call;
    const { index: _index, ...rest } = call;
    return rest;
  });
  return { ...message, tool_calls: calls };
}

function usageOf(reported: ReportedUsage | undefined): JsonValue {
  if (!reported) return null;
  const { inputTokens, cachedInputTokens, outputTokens } = reported;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}
