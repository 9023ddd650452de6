import { optionalBoolean, optionalObject } from "#kit/body.ts";
import { fingerprintOf, type JsonObject, parseJsonBody } from "#kit/json.ts";
import { weightOf } from "../tokens/weight.ts";
import type { TextOperation } from "../upstream/port.ts";

/** A body that is JSON, and what it asks for; nothing else is checked yet. */
export interface ParsedRequest {
  operation: TextOperation;
  /** Ours alone: it may be changed. */
  body: JsonObject;
  /** See `tokens/weight.ts`. */
  weight: number;
  /** The form in which the answer goes out. Compaction has only the first. */
  form: AnswerForm;
}

/** JSON, an event stream, or an event stream of chat chunks that ends with a usage chunk. */
export const answerForms = ["json", "events", "events+usage"] as const;
export type AnswerForm = (typeof answerForms)[number];

/** Parses a body, once. Refuses with INVALID_JSON, or INVALID_TYPE at `stream` and `stream_options`. */
export function parseRequest(operation: TextOperation, bytes: Uint8Array): ParsedRequest {
  const body = parseJsonBody(bytes);
  return { operation, body, weight: weightOf(body), form: formOf(operation, body) };
}

/**
 * What a repeat under the same idempotency key must agree in. `stream` and `stream_options` are left out: they choose
 * how the answer is delivered, not what it is, and an answer is replayed as a stream where one is asked for.
 */
export function requestFingerprint({ operation, body }: ParsedRequest): string {
  const { stream: _stream, stream_options: _options, ...rest } = body;
  return fingerprintOf([operation, rest]);
}

function formOf(operation: TextOperation, body: JsonObject): AnswerForm {
  const stream = optionalBoolean(body, "stream") ?? false;
  const options = optionalObject(body, "stream_options") ?? {};
  const withUsage = optionalBoolean(options, "include_usage", "stream_options.include_usage");
  if (!stream || operation === "compact") return "json";
  return operation === "chat" && withUsage ? "events+usage" : "events";
}
