// Writes the end of a text stream whose service disappeared in its middle. Each of the three protocols has its own form of that.

import type { RefusalError } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { toErrorBody } from "./errors.ts";
import { toMessagesBody } from "./messages-errors.ts";
import { dataText, eventText } from "./sse.ts";

const done = "data: [DONE]\n\n";
const errorChunk = /^data: \{"error":/m;
const terminalEvent = /^event: response\.(?:completed|incomplete|failed)$/m;

/** The known parts of a stream that broke: its first and its last bytes, where any came. */
export interface BrokenStream {
  operation: Operation;
  /** The caller's body. */
  body: Uint8Array;
  /** The id of the response, where none had begun. */
  newId: () => string;
  first: Uint8Array | undefined;
  last: Uint8Array | undefined;
  /** The id of the caller's request. */
  id: string;
}

/**
 * The events that end a stream whose service disappeared, so that it never looks complete. `response.failed` continues the numbering
 * and the response of the stream's beginning. A chat stream gets an error chunk without `[DONE]`, and one of Messages an error event.
 */
export function failureEvents(stream: BrokenStream, refusal: RefusalError, nowMs: number): string {
  const last = text(stream.last);
  if (stream.operation === Operation.CHAT_COMPLETIONS) {
    // A stream that has ended, complete or with an error, ends once.
    return last.includes("data: [DONE]") || errorChunk.test(last)
      ? ""
      : dataText({ error: toErrorBody(refusal) });
  }
  if (stream.operation === Operation.MESSAGES) {
    const isEnded = /^event: (?:message_stop|error)$/m.test(last);
    return isEnded ? "" : eventText("error", toMessagesBody(refusal, stream.id));
  }
  if (last.includes("data: [DONE]")) return "";
  if (terminalEvent.test(last)) return done;
  const { code, message } = toErrorBody(refusal);
  const response = begunResponse(text(stream.first)) ?? newResponse(stream, nowMs);
  // To clients, a stream without a beginning is broken.
  const opening = stream.first
    ? ""
    : lifecycle("created", 0, response) + lifecycle("in_progress", 1, response);
  const failed = { ...response, status: "failed", error: { code, message } };
  return opening + lifecycle("failed", stream.first ? nextNumber(last) : 2, failed) + done;
}

function lifecycle(step: string, number: number, response: Record<string, unknown>): string {
  const type = `response.${step}`;
  return eventText(type, { type, sequence_number: number, response });
}

function nextNumber(last: string): number {
  const numbers = [...last.matchAll(/"sequence_number":\s*(\d+)/g)];
  return numbers.length === 0 ? 0 : Number(numbers.at(-1)?.[1]) + 1;
}

/** The `response` of the first event. Undefined where there is none. */
function begunResponse(first: string): Record<string, unknown> | undefined {
  const data = /^data: (.+)$/m.exec(first)?.[1];
  try {
    const { response } = JSON.parse(data ?? "{}") as { response?: unknown };
    return isJsonObject(response) ? response : undefined;
  } catch {
    return undefined;
  }
}

/** The response that the service never began, with all fields that clients rely on. */
export function newResponse(
  { body, newId }: Pick<BrokenStream, "body" | "newId">,
  nowMs: number,
): Record<string, unknown> {
  const asked = jsonObject(body);
  const echoed = Object.entries(echoedDefaults).map(([name, otherwise]) => [
    name,
    echoOf(asked[name], otherwise),
  ]);
  return {
    id: newId(),
    object: "response",
    created_at: Math.floor(nowMs / 1_000),
    status: "in_progress",
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    output: [],
    previous_response_id: null,
    service_tier: "default",
    store: false,
    usage: null,
    ...Object.fromEntries(echoed),
  };
}

/** Options that a response repeats, with their values where the caller left them out. */
const echoedDefaults = {
  model: "",
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  parallel_tool_calls: true,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  truncation: "disabled",
  user: null,
  metadata: {},
};

/** The value of an option as a response repeats it. An object has all of its fields. */
function echoOf(value: JsonValue | undefined, otherwise: JsonValue): JsonValue {
  if (isJsonObject(value) && isJsonObject(otherwise)) return { ...otherwise, ...value };
  return Array.isArray(value) ? value.map(wholeTool) : (value ?? otherwise);
}

function wholeTool(tool: JsonValue): JsonValue {
  if (!isJsonObject(tool) || tool.type !== "function") return tool;
  return { description: null, parameters: null, strict: null, ...tool };
}

/** Bodies up to this size are read for the options that a response repeats, which takes a few ms. */
const repeatedBytes = 256 * 1024;

function jsonObject(body: Uint8Array): JsonObject {
  if (body.length > repeatedBytes) return {};
  try {
    const value: unknown = JSON.parse(text(body));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function text(bytes: Uint8Array | undefined): string {
  return bytes ? new TextDecoder().decode(bytes) : "";
}
