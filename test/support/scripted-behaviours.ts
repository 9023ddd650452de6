import type { ServerResponse } from "node:http";
import type { SeenRequest } from "./scripted-upstream.ts";

/** Usage as it goes into the answer, in the Responses format; null: none is reported. */
export type ScriptedUsage = {
  input_tokens?: unknown;
  output_tokens?: unknown;
  total_tokens?: unknown;
  input_tokens_details?: unknown;
  output_tokens_details?: unknown;
} | null;

/** Usages that a caller must not be charged by, or only with care. */
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

/** What a good answer says. */
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
  /** What the answer shows as `model`; default what was asked for. */
  model?: string;
}

/** How a stream misbehaves, after that many text deltas. */
export type Break =
  /** The socket is destroyed. */
  | { how: "destroy"; after: number }
  /** The body ends well, without a terminal event. */
  | { how: "end"; after: number }
  /** Nothing more comes, the connection stays. */
  | { how: "hang"; after: number }
  /** A `data:` line that is no JSON. */
  | { how: "garbage"; after: number }
  /** An `error` event, then the end. */
  | { how: "error"; after: number; code?: string }
  /** `response.failed` (chat: an error object), with the wording's usage. */
  | { how: "failed"; after: number; code?: string };

/** What a request gets. */
export type Behaviour =
  /** A right answer: of the path and of `stream` in the body. */
  | ({
      kind: "ok";
      /** Before the head. */
      firstByteDelayMs?: number;
      /** Before the head: a test that holds the answer back resolves it. */
      firstByteAfter?: Promise<unknown>;
      /** Streams only: behind the first delta, likewise. */
      restAfter?: Promise<unknown>;
      /** Between two deltas. */
      deltaDelayMs?: number;
      /** Streams only. */
      break?: Break;
      /** `connection: close`, or the socket destroyed right after the answer without having said so. */
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
  /** Takes the request and never answers. */
  | { kind: "hang" }
  /** Destroys the socket before the head; on a kept-alive connection where `reusedOnly`, which is answered else. */
  | { kind: "drop"; reusedOnly?: boolean }
  /** 200 with a body that is none. */
  | { kind: "garbage"; body?: string; contentType?: string }
  /** A JSON body as given. */
  | { kind: "json"; body: unknown; status?: number }
  /** Events as given; a string is written as it is. `[DONE]` follows unless `done` is false. */
  | { kind: "events"; events: readonly (Record<string, unknown> | string)[]; done?: boolean }
  /** A stream of `events` deltas of `deltaBytes` each, written as fast as it is read. */
  | { kind: "huge"; events: number; deltaBytes: number }
  /** An answer of the test's own. */
  | {
      kind: "custom";
      handle: (seen: SeenRequest, response: ServerResponse) => void | Promise<void>;
    };
