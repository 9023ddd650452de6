// Makes the JSON that is recorded out of a stream, and a stream out of a recorded answer. So a repeated request may ask for the
// other form.

import { exactObject } from "#kit/base/exact-json.ts";
import { jsonInTurns } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { ChunkCollector } from "../../upstreams/text/chat/chunk-collector.ts";
import { dataFrame } from "../../upstreams/text/frame.ts";
import { MessageCollector } from "../../upstreams/text/messages/message.ts";
import type { AnswerEvent, ReportedUsage, TextOperation } from "../../upstreams/text/port.ts";
import { replayedEvents } from "../../upstreams/text/replay.ts";
import { dataOf, doneFrame } from "../base/frames.ts";
import { maxKeptAnswerBytes, replayPieceBytes } from "../base/limits.ts";
import type { LargeAnswers } from "../large/index.ts";
import type { ChargedTokens } from "../metering/pricing.ts";
import { estimatedUsage } from "../metering/shown-usage.ts";
import type { AnswerForm } from "../request/parse.ts";
import type { KeptAnswer } from "../store/store.ts";

/** The form in which a complete answer is kept. Undefined: the stream did not add up to one. */
export function keepable(answer: Uint8Array | undefined): KeptAnswer {
  return answer && answer.length <= maxKeptAnswerBytes ? answer : "not_kept";
}

/** Makes the JSON answer out of a stream, for the idempotency key. */
export interface Collector {
  add(event: AnswerEvent): void;
  /**
   * The answer, once the terminal event was added. Usage that the upstream did not report is replaced by the tokens that genmesh
   * counted. Undefined where the stream did not add up to an answer.
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
  switch (operation) {
    case "chat":
      return chatCollector();
    case "messages":
      return messageCollector();
    default:
      return responseCollector(accountId, large);
  }
}

/** A frame with more bytes holds an answer that is too large to keep. The frame has fewer bytes than this beside the answer. */
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

/**
 * The response object in a frame, with the tokens that genmesh counted where the upstream reported none. Undefined where there is none.
 */
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
  /** Undefined once the answer is too large to keep. Its earlier parts then take no memory. */
  let chunks: ChunkCollector | undefined = new ChunkCollector();
  return {
    add({ frame }) {
      if (frame.length > mostFrameBytes) chunks = undefined;
      const chunk = chunks && dataOf(frame);
      if (chunk) chunks?.add(chunk);
      if (chunks && chunks.characters > maxKeptAnswerBytes) chunks = undefined;
    },
    async answer(reported, estimate) {
      const counted = estimate && estimatedUsage("chat", estimate);
      const completion = chunks?.completion(counted);
      if (!completion) return undefined;
      completion.usage ??= usageOf(reported);
      return Buffer.from(await jsonInTurns(completion));
    },
  };
}

function messageCollector(): Collector {
  /** Undefined once the answer is too large to keep. */
  let events: MessageCollector | undefined = new MessageCollector();
  return {
    add({ frame }) {
      if (frame.length > mostFrameBytes) events = undefined;
      const event = frame.length > 0 && events ? dataOf(frame) : undefined;
      if (event) events?.add(event);
      if (events && events.characters > maxKeptAnswerBytes) events = undefined;
    },
    async answer(_reported, estimate) {
      const message = events?.message();
      if (!message) return undefined;
      if (estimate) message.usage = estimatedUsage("messages", estimate);
      return Buffer.from(await jsonInTurns(message));
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

/** Events of a stream that are ready, in their order, and the ends of pieces that hold whole events. */
interface ReadyEvents {
  bytes: Uint8Array;
  ends: number[];
}

/** The event stream that a kept answer would have been, `[DONE]` included. Only responses, chat and messages have one. */
export function eventsOfAnswer(
  answer: Uint8Array,
  operation: TextOperation,
  form: AnswerForm,
): ReadyEvents {
  const text = Buffer.from(answer).toString();
  // Inputs of a message's calls keep their numbers as the model wrote them.
  const value: unknown = (operation === "messages" && exactObject(text)) || JSON.parse(text);
  const hasEvents = operation === "responses" || operation === "chat" || operation === "messages";
  if (!isJsonObject(value) || !hasEvents) throw new TypeError("no answer to stream");
  const events = replayedEvents(operation, value, { withUsage: form === "events+usage" });
  const told = events.map((event) => event.frame);
  const last = told.pop();
  if (last) told.push(operation === "chat" ? withKeptUsage(last, value) : last);
  const frames = [...told, doneFrame(operation)];
  const ends: number[] = [];
  let [begun, end] = [0, 0];
  for (const frame of frames) {
    if (end > begun && end + frame.length > begun + replayPieceBytes) {
      ends.push(end);
      begun = end;
    }
    end += frame.length;
  }
  return { bytes: Buffer.concat(frames), ends: [...ends, end] };
}

/** The usage chunk of a chat with the usage that callers saw. The upstream's own usage has neither the cost nor `estimated`. */
function withKeptUsage(frame: Uint8Array, { usage }: JsonObject): Uint8Array {
  const chunk = dataOf(frame);
  if (!isJsonObject(chunk?.usage) || !isJsonObject(usage)) return frame;
  return dataFrame({ ...chunk, usage });
}

/** Gives a stream that is ready piece by piece. One reader takes it as fast as it can, and other work has its turns. */
export async function* piecesOf({ bytes, ends }: ReadyEvents): AsyncIterable<Uint8Array> {
  let from = 0;
  for (const end of ends) {
    yield bytes.subarray(from, end);
    from = end;
  }
}
