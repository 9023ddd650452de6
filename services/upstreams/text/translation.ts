// The form of a translation that makes another protocol's answers those of Responses. Only that of Messages exists.

import type { JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";

/** Cuts the bytes of a stream into events. */
export interface EventParser {
  /** The events that `chunk` completes. */
  push(chunk: Buffer): readonly SseEvent[];
  /** The events that the stream's end left without an empty line. */
  end(): SseEvent | readonly SseEvent[] | undefined;
}

/**
 * How answers of another protocol become those of Responses. It comes before everything else that reads an answer, so that metering,
 * bounds and readers see Responses alone.
 */
export interface Translation {
  /** A parser for one stream, whose events are those of Responses. */
  parser(): EventParser;
  /** A whole answer as a response. Anything else, an error for example, stays as it is. */
  whole(found: JsonObject): JsonObject;
}
