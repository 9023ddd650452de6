// Makes one object of a stream that came where an object was asked for. Some servers can only stream.

import { turn } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { createSseParser, dataOf, eventOf, type SseEvent } from "#kit/upstream/sse.ts";
import { anyObjectIn } from "../call.ts";
import type { RequestFacts } from "./answer-defaults.ts";
import { ChunkCollector } from "./chat/chunk-collector.ts";
import { NativeChat } from "./chat/native.ts";
import { UpstreamFailure } from "./failure.ts";
import type { Unseen } from "./judging/hidden-output.ts";
import type { LargeParts } from "./large-parts.ts";
import { arrivedBytesATurn, largeAnswerBytes } from "./limits.ts";
import { MessageCollector } from "./messages/message.ts";
import type { AnswerEvent, ReportedUsage } from "./port.ts";
import { ResponsesReader } from "./responses/reader.ts";
import type { StreamReader } from "./stream-reader.ts";
import type { EventParser, Translation } from "./translation.ts";

const openingBrace = 0x7b;
const firstFields = ["data:", "event:", "id:", "retry:", ":"];

/** Is a body a stream of events? Servers that can only stream send one with any content type. */
export function isEventStream(body: Buffer): boolean {
  // Most bodies are JSON objects.
  if (body[0] === openingBrace) return false;
  const begin = body
    .subarray(0, 64)
    .toString()
    .replace(/^\uFEFF?\s*/, "");
  return firstFields.some((field) => begin.startsWith(field));
}

/** A stream that came where an object was asked for. */
export interface WholeStream {
  /** The object that the stream adds up to, in the public form. It is read like an answer that came whole. */
  object: JsonObject;
  /** All text that was generated. The public form has no place for some of it. */
  text: string;
  unseen: Unseen;
}

/** Facts that reading such a stream needs. `isChat`: its events are chunks of a chat completion. */
export interface StreamFacts {
  isChat: boolean;
  /** Reads a stream of Messages. Absent: it is none. */
  messageReader?: () => StreamReader;
  facts: RequestFacts;
  parts: LargeParts;
  /** Absent: the stream is one of Responses or Chat. */
  translation?: Translation | undefined;
}

/** Reads a stream that came where an object was asked for. Throws `UpstreamFailure` where nothing was generated. */
export async function objectOfStream(
  body: Buffer,
  { isChat, messageReader, facts, parts, translation }: StreamFacts,
): Promise<WholeStream> {
  const reader: StreamReader = isChat
    ? new NativeChat({ ...facts.chat, withUsage: true })
    : messageReader
      ? messageReader()
      : new ResponsesReader(facts.response);
  const message = new MessageCollector();
  const chunks = new ChunkCollector();
  let last: JsonObject | undefined;
  let text = "";
  const add = (events: AnswerEvent[]) => {
    for (const { frame, text: said } of events) {
      text += said;
      const shown = frame.length > 0 ? shownIn(frame) : undefined;
      if (!shown) continue;
      if (isChat) chunks.add(shown);
      if (messageReader) message.add(shown);
      last = shown;
    }
  };
  try {
    for (const events of eventsOfEachTurn(body, translation?.parser())) {
      for (const source of events) {
        if (reader.isEnded) break;
        const out: AnswerEvent[] = [];
        reader.read(await readable(source, parts), out);
        add(out);
      }
      if (reader.isEnded) break;
      await turn();
    }
    const out: AnswerEvent[] = [];
    reader.settle(out);
    reader.end("end", out);
    add(out);
  } catch (error) {
    if (error instanceof UpstreamFailure) error.usage ??= reader.usage;
    throw error;
  }
  const object = isChat
    ? (chunks.completion(undefined) ?? brokenOff(last, reader.usage))
    : messageReader
      ? (message.message() ?? last)
      : last?.response;
  if (!isJsonObject(object)) throw new UpstreamFailure("garbage");
  return { object, text, unseen: reader.unseen };
}

/** The events of a body, in groups that may be read in one turn of the event loop. */
function* eventsOfEachTurn(
  body: Buffer,
  parser: EventParser = createSseParser({ maxEventBytes: answerLimits.eventBytes }),
): Generator<readonly SseEvent[]> {
  for (let at = 0; at < body.length; at += arrivedBytesATurn) {
    yield parser.push(body.subarray(at, at + arrivedBytesATurn));
  }
  const last = [parser.end() ?? []].flat();
  if (last.length > 0) yield last;
}

async function readable(source: SseEvent, parts: LargeParts): Promise<SseEvent> {
  if (source.end - source.start <= largeAnswerBytes) return source;
  return eventOf(source.name, await parts.takeFrom(dataOf(source)));
}

function shownIn(frame: Uint8Array): JsonObject | undefined {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.length);
  const [event] = createSseParser({ maxEventBytes: answerLimits.eventBytes }).push(bytes);
  return event && anyObjectIn(dataOf(event));
}

/** A failed completion in the form of routers, with its usage. */
function brokenOff(last: JsonObject | undefined, used: ReportedUsage | undefined): JsonObject {
  const error = isJsonObject(last?.error) ? last.error : {};
  const choices = [{ index: 0, message: { content: null }, finish_reason: "error", error }];
  if (!used) return { choices };
  const { inputTokens, outputTokens, cachedInputTokens } = used;
  const details = { cached_tokens: cachedInputTokens };
  const usage = { prompt_tokens: inputTokens, completion_tokens: outputTokens };
  return { choices, usage: { ...usage, prompt_tokens_details: details } };
}
