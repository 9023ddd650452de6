import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Behaviour } from "../scripted-behaviours.ts";
import type { SeenRequest } from "../scripted-upstream.ts";
import { faultIn, statesIn } from "./anthropic-rules.ts";
import { type Answer, type Double, reply, startDouble } from "./double.ts";

/**
 * Messages of Anthropic (api.anthropic.com): `POST /v1/messages`, whole and as a stream, and `GET /v1/models`.
 *
 * From `@anthropic-ai/sdk` 1.14, whose types are the shapes here: blocks, deltas, stop reasons, usage. From Anthropic's documentation
 * (streaming, errors, preserved thinking): the order of events, `ping`, errors and their statuses, cumulative usage. A request is judged
 * by anthropic-rules.ts. Thinking holds only behind exactly the turns that it was made behind.
 */
export interface AnthropicDouble extends Double<AnthropicRoute> {
  /** Ends in /v1. */
  baseUrl: string;
  key: string;
  /** The answers to the next requests, one each. Then `usual` applies again. */
  answers: Made[];
  usual: Made;
  /** Ids of its models. */
  models: string[];
}

type AnthropicRoute = "messages" | "count" | "models" | "model";

// biome-ignore lint/suspicious/noExplicitAny: blocks of every shape.
type Block = any;

/** The answer to a request, and the mishaps on its way. */
export interface Made {
  content?: Block[];
  stop_reason?: string | null;
  stop_sequence?: string | null;
  stop_details?: object | null;
  usage?: Record<string, unknown>;
  /** Of a stream: ends after this many events, without a reason. */
  cutAfter?: number;
  /** Of a stream: an error in place of the event with this number. */
  errorAt?: number;
  /** Of a stream: what message_start tells of the usage. Default: all but the output. */
  firstUsage?: Record<string, unknown> | null;
}

/** Answers without any work, for {@link Double.next}. */
export const anthropicAnswers = {
  credit: refused(
    ...([400, "invalid_request_error"] as const),
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
  ),
  limits: refused(
    ...([400, "invalid_request_error"] as const),
    "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
  ),
  billing: refused(402, "billing_error", "There is an issue with your billing."),
  key: refused(401, "authentication_error", "invalid x-api-key"),
  forbidden: refused(403, "permission_error", "Your API key may not use this model."),
  noModel: refused(404, "not_found_error", "model: claude-none"),
  tooLarge: refused(413, "request_too_large", "Request exceeds the maximum size"),
  rate: refused(
    ...([429, "rate_limit_error"] as const),
    "This request would exceed your organization's rate limit.",
    { "retry-after": "7" },
  ),
  down: refused(500, "api_error", "Internal server error"),
  overloaded: refused(529, "overloaded_error", "Overloaded"),
  tooLong: refused(
    ...([400, "invalid_request_error"] as const),
    "prompt is too long: 210000 tokens > 200000 maximum",
  ),
  noRoom: refused(
    ...([400, "invalid_request_error"] as const),
    "input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input length or `max_tokens` and try again",
  ),
  filtered: refused(
    ...([400, "invalid_request_error"] as const),
    "Output blocked by content filtering policy",
  ),
  wrong: refused(400, "invalid_request_error", "temperature: range: 0..1"),
} satisfies Record<string, Behaviour>;

/** The first version of the API, and the one that the SDK asks for since 1.0. The shapes here are those of both. */
const versions = ["2023-06-01", "2026-10-21"];
const usualAnswer: Made = { content: [{ type: "text", text: "Hello from upstream." }] };
const usualUsage = {
  input_tokens: 10,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { thinking_tokens: 0 },
  server_tool_use: null,
  service_tier: "standard",
  inference_geo: "global",
};

/** Starts a server on a free loopback port (or on `port`). */
export async function startAnthropic({
  port = 0,
  key = "sk-ant-test",
} = {}): Promise<AnthropicDouble> {
  const answers: Made[] = [];
  const state = { usual: usualAnswer, made: 0 };
  const models = ["up-model", "claude-opus-5-5"];
  /** The signature of each thinking block, and what it was made behind. */
  const signed = new Map<string, string>();

  const sign = (block: Block, behind: string): Block => {
    if (block.type === "redacted_thinking") signed.set(block.data, behind);
    if (block.type === "thinking" && block.signature) signed.set(block.signature, behind);
    for (const state of statesIn(block)) signed.set(state, behind);
    return block;
  };
  const answerTo = (seen: SeenRequest): Answer => {
    const fault = faultIn(seen, signed);
    if (fault) return refused(400, "invalid_request_error", fault);
    const made = answers.shift() ?? state.usual;
    const behind = hashOf(seen.body, seen.body.messages);
    const content = (made.content ?? []).map((block) => sign(block, behind));
    const message = {
      ...{ id: `msg_${++state.made}`, type: "message", role: "assistant" },
      model: seen.body.model,
      content,
      stop_reason: made.stop_reason === undefined ? reasonOf(content) : made.stop_reason,
      stop_sequence: made.stop_sequence ?? null,
      stop_details: made.stop_details ?? null,
      usage: { ...usualUsage, ...made.usage },
    };
    return seen.body.stream ? streamed(message, made) : reply(200, message);
  };
  const double = await startDouble<AnthropicRoute>(
    [
      { ...{ name: "messages", method: "POST", path: /^\/v1\/messages$/ }, answer: answerTo },
      {
        ...{ name: "count", method: "POST", path: /^\/v1\/messages\/count_tokens$/ },
        answer: ({ body }) => {
          const odd = Object.keys(body).find((name) => !countedFields.includes(name));
          if (odd)
            return refused(400, "invalid_request_error", `${odd}: Extra inputs are not permitted`);
          return reply(200, { input_tokens: 4_242 });
        },
      },
      {
        ...{ name: "models", method: "GET", path: /^\/v1\/models$/ },
        answer: () => {
          const data = models.map(modelOf);
          const ends = { first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
          return reply(200, { data, has_more: false, ...ends });
        },
      },
      {
        ...{ name: "model", method: "GET", path: /^\/v1\/models\/([^/]+)$/ },
        answer: (_seen, [id = ""]) =>
          id === "claude-opus-latest" || models.includes(id)
            ? reply(200, modelOf(id))
            : refused(404, "not_found_error", `model: ${id}`),
      },
    ],
    {
      port,
      guard: ({ headers }) => {
        const given = headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");
        if (given !== key) return anthropicAnswers.key;
        if (versions.includes(`${headers["anthropic-version"]}`)) return undefined;
        return refused(400, "invalid_request_error", "anthropic-version: header is required");
      },
      unknown: refused(404, "not_found_error", "Not Found"),
    },
  );
  return {
    ...double,
    ...{ baseUrl: `${double.origin}/v1`, key, answers, models },
    get usual() {
      return state.usual;
    },
    set usual(made) {
      state.usual = made;
    },
  };
}

/** Fields of a request whose tokens are counted. */
const countedFields: readonly string[] = [
  ...["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"],
  "cache_control",
];

/** A hash of all that a thinking block is bound to: the tools, the system and the turns before it. */
export function hashOf({ tools, system }: Block, messages: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify([tools, system, messages]))
    .digest("hex");
}

function modelOf(id: string) {
  return { type: "model", id, display_name: id, created_at: "2026-09-01T00:00:00Z" };
}

function reasonOf(content: readonly Block[]): string {
  return content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
}

function refused(
  status: number,
  type: string,
  message: string,
  headers: Record<string, string> = {},
): Behaviour {
  const body = { type: "error", error: { type, message }, request_id: "req_011" };
  return reply(status, body, { "request-id": "req_011", ...headers });
}

/** The message as events, its texts in pieces of some characters. */
function streamed(message: Block, made: Made): Answer {
  return {
    kind: "custom",
    async handle(_seen, response: ServerResponse) {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      let sent = 0;
      for (const event of eventsOf(message, made)) {
        if (sent === made.cutAfter) return void response.socket?.destroy();
        const isError = sent++ === made.errorAt;
        const error = { type: "overloaded_error", message: "Overloaded" };
        const told = isError ? { type: "error", error, request_id: "req_011" } : event;
        const frame = `event: ${told.type}\ndata: ${JSON.stringify(told)}\n\n`;
        await new Promise((resolve) => response.write(frame, resolve));
        if (isError) break;
      }
      response.end();
    },
  };
}

function* eventsOf(message: Block, { firstUsage }: Made): Iterable<Block> {
  const { content, stop_reason, stop_sequence, stop_details, usage, ...head } = message;
  const { cache_creation: _, output_tokens, ...counts } = usage;
  const begun = firstUsage === undefined ? { ...usage, output_tokens: 1 } : firstUsage;
  const start = { ...head, content: [], stop_reason: null, stop_sequence: null };
  yield { type: "message_start", message: { ...start, ...(begun && { usage: begun }) } };
  for (const [index, block] of content.entries()) {
    const { empty, deltas } = piecesOf(block);
    yield { type: "content_block_start", index, content_block: empty };
    if (index === 0) yield { type: "ping" };
    for (const delta of deltas) yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
  }
  const delta = { stop_reason, stop_sequence, stop_details };
  // The last usage is cumulative, and has no split of what was written to a cache.
  yield { type: "message_delta", delta, usage: { ...counts, output_tokens } };
  yield { type: "message_stop" };
}

function piecesOf(block: Block): { empty: Block; deltas: Block[] } {
  switch (block.type) {
    case "text": {
      const { citations } = block;
      const cited = (citations ?? []).map((citation: Block) => ({
        ...{ type: "citations_delta", citation },
      }));
      const texts = inPieces(block.text).map((text) => ({ type: "text_delta", text }));
      return {
        empty: { ...block, text: "", ...(citations && { citations: [] }) },
        deltas: [...cited, ...texts],
      };
    }
    case "thinking": {
      const thoughts = inPieces(block.thinking).map((thinking) => ({
        ...{ type: "thinking_delta", thinking },
      }));
      const signature = { type: "signature_delta", signature: block.signature };
      return {
        empty: { ...block, thinking: "", signature: "" },
        deltas: [...thoughts, ...(block.signature ? [signature] : [])],
      };
    }
    case "server_tool_use":
    case "tool_use": {
      const json = Object.keys(block.input).length > 0 ? JSON.stringify(block.input) : "";
      const pieces = inPieces(json).map((partial_json) => ({
        ...{ type: "input_json_delta", partial_json },
      }));
      return {
        empty: { ...block, input: {} },
        deltas: [{ type: "input_json_delta", partial_json: "" }, ...pieces],
      };
    }
    default:
      return { empty: block, deltas: [] };
  }
}

function inPieces(text: string): string[] {
  return text.match(/[\s\S]{1,7}/g) ?? [];
}
