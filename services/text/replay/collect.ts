import { jsonInTurns } from "#kit/in-turns.ts";
import { isJsonObject, type JsonValue } from "#kit/json.ts";
import { ChunkCollector } from "../../upstreams/text/chat/chunk-collector.ts";
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
  const chunks = new ChunkCollector();
  let isTooLarge = false;
  return {
    add({ frame }) {
      isTooLarge ||= frame.length > mostFrameBytes;
      const chunk = isTooLarge ? undefined : dataOf(frame);
      if (chunk) chunks.add(chunk);
    },
    async answer(reported, estimate) {
      const counted = estimate && estimatedUsage("chat", estimate);
      const completion = isTooLarge ? undefined : chunks.completion(counted);
      if (!completion) return undefined;
      completion.usage ??= usageOf(reported);
      return Buffer.from(await jsonInTurns(completion));
    },
  };
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
