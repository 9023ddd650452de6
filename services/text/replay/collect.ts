import { jsonInTurns } from "#kit/in-turns.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { AnswerEvent, ReportedUsage, TextOperation } from "../../upstreams/text/port.ts";
import type { LargeAnswers } from "../large/index.ts";
import { maxKeptAnswerBytes } from "../limits.ts";
import type { ChargedTokens } from "../pricing.ts";
import { estimatedUsage } from "../shown-usage.ts";
import type { KeptAnswer } from "../store.ts";
import { dataOf } from "./frames.ts";

/** What is kept of a complete answer; undefined: the stream did not add up to one. */
export function keepable(answer: Uint8Array | undefined): KeptAnswer {
  return answer && answer.length <= maxKeptAnswerBytes ? answer : "not_kept";
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
  ): Promise<Uint8Array | undefined>;
}

/** A collector for one stream of an account. */
export function createCollector(
  operation: TextOperation,
  accountId: string,
  large: Pick<LargeAnswers, "run">,
): Collector {
  return operation === "chat" ? chatCollector() : responseCollector(accountId, large);
}

/** A frame of more bytes holds an answer that is too large to keep: what stands around it has fewer than this. */
const mostFrameBytes = maxKeptAnswerBytes + 1_024;

/** The terminal event of a Responses stream carries the whole response. */
function responseCollector(accountId: string, large: Pick<LargeAnswers, "run">): Collector {
  let last: AnswerEvent | undefined;
  return {
    add(event) {
      last = event;
    },
    async answer(_reported, estimate) {
      if (!last || last.frame.length > mostFrameBytes) return undefined;
      return await large.run("response", { accountId }, last.frame, estimate);
    },
  };
}

/** The response object in a frame, with what we counted where upstream reported nothing; undefined where there is none. */
export function responseIn(
  frame: Uint8Array,
  estimate: ChargedTokens | undefined,
): Uint8Array | undefined {
  const response = dataOf(frame)?.response;
  if (!isJsonObject(response)) return undefined;
  const usage = estimate ? { usage: estimatedUsage("responses", estimate) } : {};
  return Buffer.from(JSON.stringify({ ...response, ...usage }));
}

function chatCollector(): Collector {
  let head: JsonObject | undefined;
  let usage: JsonValue = null;
  let finish: JsonValue = null;
  let logprobs: JsonObject | null = null;
  let isTooLarge = false;
  const message: JsonObject = { role: "assistant", content: null, refusal: null };
  const addChoice = (choice: JsonObject) => {
    if (choice.finish_reason) finish = choice.finish_reason;
    if (isJsonObject(choice.logprobs)) logprobs = mergeDelta(logprobs ?? {}, choice.logprobs);
    if (isJsonObject(choice.delta)) mergeDelta(message, choice.delta);
  };
  return {
    add({ frame }) {
      isTooLarge ||= frame.length > mostFrameBytes;
      if (isTooLarge) return;
      const chunk = dataOf(frame);
      if (!chunk) return;
      head ??= chunk;
      if (isJsonObject(chunk.usage)) usage = chunk.usage;
      const choice = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
      if (isJsonObject(choice)) addChoice(choice);
    },
    async answer(reported, estimate) {
      if (!head || finish === null || isTooLarge) return undefined;
      const { choices: _choices, usage: _usage, ...rest } = head;
      const completion: JsonObject = {
        ...rest,
        object: "chat.completion",
        choices: [{ index: 0, message: finished(message), logprobs, finish_reason: finish }],
        usage: estimate ? estimatedUsage("chat", estimate) : (usage ?? usageOf(reported)),
      };
      return Buffer.from(await jsonInTurns(completion));
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
