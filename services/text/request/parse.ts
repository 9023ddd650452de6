// Reads a body as JSON, and takes its fingerprint and weight on the way. The catalog is not needed yet, so a recorded answer is
// found after this step alone.

import { optionalBoolean, optionalNumber, optionalObject } from "#common/words/body.ts";
import { type Awaitable, after } from "#kit/base/awaitable.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { weightOf } from "#kit/base/weight.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import { outputBounds } from "../../upstreams/text/output-limit.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import { maxJsonDepth } from "../base/limits.ts";

/** A body that is JSON, with the facts that its parsing needs. Nothing else is checked yet. */
export interface ParsedRequest {
  operation: TextOperation;
  /** Only this request has it, so it may be changed. */
  body: JsonObject;
  /** See `weightOf` in kit/base/weight.ts. The bound of the output is left out, because it is not text of the input. */
  weight: number;
  /**
   * A repeat under the same idempotency key must have the same fingerprint. "" without a key. `stream`, `stream_options` and
   * `starting_after` are left out. They choose how the answer is delivered, not its content, and a kept answer can be replayed as a
   * stream.
   */
  fingerprint: string;
  /** The form in which the answer is sent. Only responses and chat have others than the first. */
  form: AnswerForm;
  /** The caller has the events of a stream up to this `sequence_number`. Absent: it has none. */
  startingAfter?: number | undefined;
  /** For Messages: the bytes of the body. Turns of the model must stay as they were written. */
  bytes?: Uint8Array;
}

/** JSON, an event stream, or an event stream of chat chunks that ends with a usage chunk. */
export const answerForms = ["json", "events", "events+usage"] as const;
export type AnswerForm = (typeof answerForms)[number];

/** The account of the body, and the terms of parsing. */
export interface Parsing {
  reader: JsonReader;
  accountId: string;
  /** Is there an idempotency key? */
  isKeyed: boolean;
  signal: StopSignal;
}

/** Parses a body once. Refuses like {@link JsonReader.read}, or with INVALID_TYPE at `stream` and `stream_options`. */
export function parseRequest(
  operation: TextOperation,
  bytes: Uint8Array,
  { reader, isKeyed, ...asking }: Parsing,
): Awaitable<ParsedRequest> {
  const wanted = isKeyed ? { ...weighed, fingerprint: repeatsOf(operation) } : weighed;
  return after(reader.read(bytes, wanted, asking), ({ value: body, weight, fingerprint }) => {
    let text = weight;
    for (const bound of boundWeights)
      if (typeof body[bound.name] === "number") text -= bound.weight;
    const form = formOf(operation, body);
    const asWritten = operation === "messages" && { bytes };
    const parsed = { operation, body, weight: text, fingerprint, form, ...asWritten };
    // Only events of responses have a `sequence_number`.
    if (body.starting_after === undefined || operation !== "responses") return parsed;
    const startingAfter = optionalNumber(body, "starting_after", { integer: true, min: 0 });
    return { ...parsed, startingAfter };
  });
}

const weighed = { weighLevels: maxJsonDepth };

/** Repeats of a request may ask for another form of its answer, and for a part of it. */
function repeatsOf(tag: TextOperation) {
  const ofForm = ["stream", "stream_options"];
  return { tag, without: tag === "responses" ? [...ofForm, "starting_after"] : ofForm };
}

/** The weight that each name of the output's bound and its number add to a body. */
const boundWeights = outputBounds.map((name) => ({
  name,
  weight: weightOf({ [name]: 0 }, maxJsonDepth) - weightOf({}, maxJsonDepth),
}));

function formOf(operation: TextOperation, body: JsonObject): AnswerForm {
  if (operation === "embeddings" || operation === "transcriptions") return "json";
  const stream = optionalBoolean(body, "stream") ?? false;
  const options = optionalObject(body, "stream_options") ?? {};
  const withUsage = optionalBoolean(options, "include_usage", "stream_options.include_usage");
  if (!stream || operation === "compact") return "json";
  return operation === "chat" && withUsage ? "events+usage" : "events";
}
