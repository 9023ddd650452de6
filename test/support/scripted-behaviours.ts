import type { ServerResponse } from "node:http";
import type { SeenRequest } from "./scripted-upstream.ts";

/** Usage in the Responses format. Null reports none. */
export type ScriptedUsage = {
  input_tokens?: unknown;
  output_tokens?: unknown;
  total_tokens?: unknown;
  input_tokens_details?: unknown;
  output_tokens_details?: unknown;
  server_tool_use?: unknown;
  service_tier?: unknown;
} | null;

/** Usages by which a caller must not be charged, or only with care. */
export const strangeUsages = {
  missing: null,
  zero: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  negative: { input_tokens: -5, output_tokens: -1, total_tokens: -6 },
  absurd: { input_tokens: 9e15, output_tokens: 9e15, total_tokens: 18e15 },
  fractional: { input_tokens: 10.5, output_tokens: 2.5, total_tokens: 13 },
  cachedAboveInput: {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    input_tokens_details: { cached_tokens: 50 },
  },
} satisfies Record<string, ScriptedUsage>;

/** The content of a good answer. */
export interface Wording {
  /** Text deltas of the answer. Default: `["Hello", " from", " upstream", "."]`. */
  deltas?: readonly string[];
  /** A function call in place of text. */
  call?: { name: string; arguments: string };
  /** `encrypted_content` of a reasoning item before the text. */
  encrypted?: string;
  /** Default: 10 in, 5 out. */
  usage?: ScriptedUsage;
  /** `length`: incomplete for max_output_tokens. `content_filter` likewise. Default `stop`. */
  finish?: "stop" | "length" | "content_filter";
  /** The answer's `model`. Default: the requested model. */
  model?: string;
}

/** A fault of a stream, after a number of text deltas. */
export type Break =
  /** The socket is destroyed. */
  | { how: "destroy"; after: number }
  /** The body ends well, without a terminal event. */
  | { how: "end"; after: number }
  /** No further byte comes, and the connection stays open. */
  | { how: "hang"; after: number }
  /** A `data:` line that is no JSON. */
  | { how: "garbage"; after: number }
  /** An `error` event, then the end. */
  | { how: "error"; after: number; code?: string }
  /** `response.failed` (chat: an error object), with the wording's usage. */
  | { how: "failed"; after: number; code?: string };

/** The treatment of a request. */
export type Behaviour =
  /** A correct answer for the path and for `stream` in the body. */
  | ({
      kind: "ok";
      /** Before the head. */
      firstByteDelayMs?: number;
      /** Before the head. A test that holds the answer back resolves this. */
      firstByteAfter?: Promise<unknown>;
      /** Streams only: the same after the first delta. */
      restAfter?: Promise<unknown>;
      /** Between two deltas. */
      deltaDelayMs?: number;
      /** Streams only. */
      break?: Break;
      /** `connection: close`, or the socket is destroyed right after the answer without a warning. */
      afterwards?: "close" | "destroy";
      /** The bytes of a stream are written in pieces of this size, each in its own turn of the event loop. */
      pieceBytes?: number;
    } & Wording)
  /** An HTTP error in OpenAI's shape. Its message must never reach a caller. */
  | {
      kind: "status";
      status: number;
      code?: string;
      param?: string;
      message?: string;
      headers?: Record<string, string>;
    }
  /** Never answers the request. */
  | { kind: "hang" }
  /** Destroys the socket before the head. With `reusedOnly` only on a reused connection; others are answered. */
  | { kind: "drop"; reusedOnly?: boolean }
  /** 200 with a body that is no JSON. */
  | { kind: "garbage"; body?: string; contentType?: string }
  /** This JSON body. */
  | { kind: "json"; body: unknown; status?: number }
  /** These events. A string is written unchanged. `[DONE]` follows unless `done` is false. */
  | { kind: "events"; events: readonly (Record<string, unknown> | string)[]; done?: boolean }
  /** A stream of `events` deltas of `deltaBytes` each, written as fast as the caller reads. */
  | { kind: "huge"; events: number; deltaBytes: number }
  /** An answer that the test writes itself. */
  | {
      kind: "custom";
      handle: (seen: SeenRequest, response: ServerResponse) => void | Promise<void>;
    };
