// Writes the chunks of a chat stream that is made of a Responses stream, and the error with which any chat stream breaks off.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { only } from "../allowed.ts";
import { errorBody } from "../frame.ts";
import type { FinishReason } from "./completion.ts";
import { logprobFields, messageFields } from "./visible-fields.ts";

/** The fields that every chunk of a stream shows. */
export interface ChunkHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
  /** True where the caller wants usage. Then every chunk except the last has `usage: null`. */
  withUsage: boolean;
}

/** Makes the chunks of one chat completion stream. */
export class ChunkWriter {
  readonly #begin: string;
  readonly #end: string;

  constructor(head: ChunkHead) {
    const { id, created, model } = head;
    const fields = {
      id,
      object: "chat.completion.chunk",
      created,
      model,
      system_fingerprint: null,
    };
    this.#begin = `data: ${JSON.stringify(fields).slice(0, -1)},"choices":`;
    this.#end = head.withUsage ? ',"usage":null}\n\n' : "}\n\n";
  }

  /** A chunk with a delta of the only choice. */
  delta(delta: JsonObject, logprobs: JsonValue = null): Buffer {
    const shown = isJsonObject(logprobs) ? only(logprobs, logprobFields) : null;
    return this.#chunk(only(delta, messageFields), shown, null);
  }

  /** The chunk that has the reason for the end. */
  finish(reason: FinishReason): Buffer {
    return this.#chunk({}, null, reason);
  }

  /** The chunk that carries usage and no choice. */
  usage(usage: JsonObject): Buffer {
    return Buffer.from(`${this.#begin}[],"usage":${JSON.stringify(usage)}}\n\n`);
  }

  #chunk(delta: JsonObject, logprobs: JsonValue, finish: FinishReason | null): Buffer {
    const choice = { index: 0, delta, logprobs, finish_reason: finish };
    return Buffer.from(`${this.#begin}[${JSON.stringify(choice)}]${this.#end}`);
  }
}

/** The event that ends a chat stream which failed after it had begun. */
export function errorChunk(reason: Reason): Buffer {
  return Buffer.from(`data: ${JSON.stringify({ error: errorBody(reason) })}\n\n`);
}
