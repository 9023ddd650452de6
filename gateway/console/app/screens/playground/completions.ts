// Translates a chat of the page into Chat Completions and back. The page itself holds it in the form of Responses.
//
// A model without `/responses` is asked by `/chat/completions`. The conversation of the page stays a list of items, as in
// `/responses`. This file turns them into messages, and the answer into items.

import { ApiError } from "../../api.ts";
import { present } from "./setting-values.ts";

/** An answer in the form of `/responses`, with the fields that the page reads. */
export interface Whole {
  id: string;
  status: string;
  output: Item[];
  usage?: Usage;
  error?: { message?: string; code?: string } | null;
}

export interface Item {
  type: string;
  role?: string;
  content?: { type: string; text?: string }[];
  summary?: { text?: string }[];
  call_id?: string;
  name?: string;
  arguments?: string;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  output_tokens_details?: { reasoning_tokens?: number };
  costUsdMicros?: number;
}

type Message = Record<string, unknown>;
/** A part of a message. */
export interface GivenPart {
  type: string;
  text?: string;
  image_url?: string;
  filename?: string;
  file_data?: string;
}
/** An item of the page's conversation. */
export interface GivenItem {
  type?: string;
  role?: string;
  content?: string | GivenPart[];
  call_id?: string;
  name?: string;
  arguments?: string;
  output?: string;
}

/** The body of `/chat/completions` for the same request as a body of `/responses`. */
export function completionBody(body: Record<string, unknown>): Record<string, unknown> {
  const { model, instructions, input, max_output_tokens, reasoning, tools, text, stream } = body;
  const { temperature, top_p, seed, stop } = body;
  const format = (text as { format: Record<string, unknown> } | undefined)?.format;
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const messages: Message[] = instructions ? [{ role: "system", content: instructions }] : [];
  for (const item of items as GivenItem[]) addMessage(messages, item);
  return {
    model,
    messages,
    ...(max_output_tokens === undefined ? {} : { max_completion_tokens: max_output_tokens }),
    ...(reasoning === undefined
      ? {}
      : { reasoning_effort: (reasoning as { effort: string }).effort }),
    ...(tools === undefined ? {} : { tools: (tools as Record<string, unknown>[]).map(toolOf) }),
    ...present({ temperature, top_p, seed, stop }),
    ...(format && { response_format: formatOf(format) }),
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  };
}

function formatOf({ type, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return { type, json_schema: schema };
}

function addMessage(messages: Message[], item: GivenItem): void {
  if (item.type === "function_call") {
    const { call_id: id, name, arguments: given } = item;
    const call = { id, type: "function", function: { name, arguments: given } };
    const last = messages.at(-1);
    // The text and the calls of one answer are one message.
    if (last?.role === "assistant") {
      last.tool_calls = [...((last.tool_calls as unknown[]) ?? []), call];
    } else messages.push({ role: "assistant", content: null, tool_calls: [call] });
  } else if (item.type === "function_call_output") {
    messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
  } else if (item.role !== undefined) {
    messages.push({ role: item.role, content: contentOf(item) });
  }
  // Reasoning is not repeated to the model.
}

function contentOf({ role, content = "" }: GivenItem): unknown {
  if (typeof content === "string") return content;
  if (role === "assistant") return content.map(({ text = "" }) => text).join("");
  return content.map(partOf);
}

function partOf(part: GivenPart): unknown {
  const { type, text, image_url: url, ...file } = part;
  if (type === "input_image") return { type: "image_url", image_url: { url } };
  if (type === "input_file") return { type: "file", file };
  return type === "input_audio" ? part : { type: "text", text };
}

function toolOf({ type, ...tool }: Record<string, unknown>): Record<string, unknown> {
  return type === "function" && tool.function === undefined
    ? { type, function: tool }
    : { type, ...tool };
}

interface Said {
  content?: string | null;
  reasoning_content?: string | null;
  tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

/** A chunk of a stream, or a whole completion. */
interface Piece {
  id?: string;
  choices?: { delta?: Said; message?: Said; finish_reason?: string | null }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    completion_tokens_details?: { reasoning_tokens?: number };
    costUsdMicros?: number;
  } | null;
  error?: Record<string, unknown>;
}

/** Gathers the pieces of an answer. */
export class Completion {
  id = "";
  text = "";
  reasoning = "";
  readonly #calls: { call_id: string; name: string; arguments: string }[] = [];
  #finish: string | undefined;
  #usage: Usage | undefined;

  take(piece: Piece): void {
    if (piece.error) throw new ApiError(0, piece.error, null);
    this.id ||= piece.id ?? "";
    const [choice] = piece.choices ?? [];
    const said = choice?.delta ?? choice?.message;
    this.text += said?.content ?? "";
    this.reasoning += said?.reasoning_content ?? "";
    for (const [place, call] of (said?.tool_calls ?? []).entries()) {
      const known = this.#calls[call.index ?? place] ?? { call_id: "", name: "", arguments: "" };
      this.#calls[call.index ?? place] = known;
      known.call_id ||= call.id ?? "";
      known.name += call.function?.name ?? "";
      known.arguments += call.function?.arguments ?? "";
    }
    this.#finish = choice?.finish_reason ?? this.#finish;
    if (piece.usage) this.#usage = usageOf(piece.usage);
  }

  /** The whole answer. Undefined where it broke off. */
  whole(): Whole | undefined {
    if (this.#finish === undefined) return undefined;
    const item = (type: string, text: string): Item[] =>
      text === "" ? [] : [{ type: "message", role: "assistant", content: [{ type, text }] }];
    const calls = this.#calls.map((call): Item => ({ type: "function_call", ...call }));
    return {
      id: this.id,
      status: this.#finish === "length" ? "incomplete" : "completed",
      output: [...item("output_text", this.text), ...calls],
      ...(this.#usage ? { usage: this.#usage } : {}),
    };
  }
}

function usageOf(usage: NonNullable<Piece["usage"]>): Usage {
  const { prompt_tokens, completion_tokens, completion_tokens_details, costUsdMicros } = usage;
  return {
    input_tokens: prompt_tokens,
    output_tokens: completion_tokens,
    ...(completion_tokens_details ? { output_tokens_details: completion_tokens_details } : {}),
    ...(costUsdMicros === undefined ? {} : { costUsdMicros }),
  };
}
