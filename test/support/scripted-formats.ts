import type { Break, ScriptedUsage, Wording } from "./scripted-behaviours.ts";
import type { SeenRequest } from "./scripted-upstream.ts";

/** A piece of a stream, made of whole events. */
export interface Part {
  text: string;
  /** Comes before any output, so that no break is here. */
  isOpening?: boolean;
  isDelta?: boolean;
}

const createdAt = 1_760_000_000;
const defaultUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
};

/** A correct JSON answer for the requested path. */
export function jsonAnswer(seen: SeenRequest, wording: Wording): Record<string, unknown> {
  if (seen.path.endsWith("/chat/completions")) return completion(seen, wording);
  if (seen.path.endsWith("/compact")) return compaction(seen, wording);
  return responseObject(seen, wording, statusOf(wording), outputOf(wording), usageOf(wording));
}

/** A correct stream for the requested path, piece by piece. */
export function streamParts(seen: SeenRequest, wording: Wording): Iterable<Part> {
  return seen.path.endsWith("/chat/completions")
    ? chatParts(seen, wording)
    : responsesParts(seen, wording);
}

/** The last event of a broken stream. Undefined where the stream ends without one. */
export function brokenEvent(broken: Break, seen: SeenRequest, wording: Wording): Part | undefined {
  const isChat = seen.path.endsWith("/chat/completions");
  const code = ("code" in broken && broken.code) || "server_error";
  const error = { code, message: "UPSTREAM SECRET WORDS" };
  if (broken.how === "garbage") return { text: "data: {this is not JSON\n\n" };
  if (broken.how !== "error" && broken.how !== "failed") return undefined;
  if (isChat) return { text: `data: ${JSON.stringify({ error })}\n\n` };
  if (broken.how === "error") {
    return { text: framed({ type: "error", ...error, param: null, sequence_number: 99 }) };
  }
  const failed = responseObject(seen, wording, "failed", [], usageOf(wording));
  return { text: framed({ type: "response.failed", response: { ...failed, error } }) };
}

/** The stream of `deltas` equal text deltas whose terminal event does not repeat them. */
export function* hugeParts(seen: SeenRequest, deltas: number, delta: string): Iterable<Part> {
  const source = streamParts(seen, { deltas: [delta] })[Symbol.iterator]();
  let part = source.next();
  while (!part.done && !part.value.isDelta) {
    yield part.value;
    part = source.next();
  }
  if (part.done) return;
  for (let i = 0; i < deltas; i++) yield part.value;
  for (const rest of { [Symbol.iterator]: () => source }) yield rest;
}

function usageOf(wording: Wording): ScriptedUsage {
  return wording.usage === undefined ? defaultUsage : wording.usage;
}

function statusOf(wording: Wording): string {
  return wording.finish && wording.finish !== "stop" ? "incomplete" : "completed";
}

function textOf(wording: Wording): readonly string[] {
  return wording.deltas ?? ["Hello", " from", " upstream", "."];
}

function outputOf(wording: Wording): Record<string, unknown>[] {
  const reasoning = wording.encrypted && {
    type: "reasoning",
    id: "rs_up_1",
    summary: [],
    encrypted_content: wording.encrypted,
  };
  const said = wording.call
    ? {
        type: "function_call",
        id: "fc_up_1",
        call_id: "call_up_1",
        status: "completed",
        ...wording.call,
      }
    : {
        type: "message",
        id: "msg_up_1",
        status: "completed",
        role: "assistant",
        content: [
          {
            type: "output_text",
            text: textOf(wording).join(""),
            annotations: [],
            logprobs: [],
          },
        ],
      };
  return reasoning ? [reasoning, said] : [said];
}

/** In OpenAI's form. It repeats `instructions` unchanged, and a gateway must remove them. */
function responseObject(
  seen: SeenRequest,
  wording: Wording,
  status: string,
  output: unknown[],
  usage: ScriptedUsage,
): Record<string, unknown> {
  const reason = wording.finish === "length" ? "max_output_tokens" : wording.finish;
  return {
    id: "resp_up_1",
    object: "response",
    created_at: createdAt,
    status,
    error: null,
    incomplete_details: status === "incomplete" ? { reason } : null,
    instructions: seen.body?.instructions ?? null,
    max_output_tokens: seen.body?.max_output_tokens ?? null,
    model: wording.model ?? seen.body?.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    store: true,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: seen.body?.tools ?? [],
    top_p: 1,
    truncation: "disabled",
    usage,
    metadata: {},
  };
}

function compaction(seen: SeenRequest, wording: Wording): Record<string, unknown> {
  return {
    id: "resp_up_1",
    object: "response.compaction",
    created_at: createdAt,
    output: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "kept" }] },
      {
        type: "compaction",
        id: "cmp_up_1",
        encrypted_content: wording.encrypted ?? `sealed:${seen.raw.length}`,
      },
    ],
    usage: usageOf(wording),
  };
}

function framed(event: { type: string; [name: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function* responsesParts(seen: SeenRequest, wording: Wording): Iterable<Part> {
  let sequence = 0;
  const frame = (type: string, fields: Record<string, unknown>) =>
    framed({ type, ...fields, sequence_number: sequence++ });
  const begun = responseObject(seen, wording, "in_progress", [], null);
  yield {
    isOpening: true,
    text:
      frame("response.created", { response: begun }) +
      frame("response.in_progress", { response: begun }),
  };
  const output = outputOf(wording);
  for (const [index, item] of output.entries()) {
    yield* itemParts(item, index, wording, frame);
  }
  const status = statusOf(wording);
  const ended = responseObject(seen, wording, status, output, usageOf(wording));
  yield { text: `${frame(`response.${status}`, { response: ended })}data: [DONE]\n\n` };
}

function* itemParts(
  item: Record<string, unknown>,
  index: number,
  wording: Wording,
  frame: (type: string, fields: Record<string, unknown>) => string,
): Iterable<Part> {
  const at = { output_index: index, item_id: item.id };
  const open = { ...item, status: "in_progress" };
  const done = frame.bind(null, "response.output_item.done", { output_index: index, item });
  if (item.type === "reasoning") {
    yield { text: frame("response.output_item.added", { output_index: index, item }) + done() };
    return;
  }
  if (item.type === "function_call") {
    const added = { output_index: index, item: { ...open, arguments: "" } };
    yield { isOpening: true, text: frame("response.output_item.added", added) };
    for (const delta of `${item.arguments}`.match(/.{1,6}/gs) ?? []) {
      const text = frame("response.function_call_arguments.delta", { ...at, delta });
      yield { isDelta: true, text };
    }
    const all = frame("response.function_call_arguments.done", {
      ...at,
      arguments: item.arguments,
    });
    yield { text: all + done() };
    return;
  }
  const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
  const inPart = { ...at, content_index: 0 };
  const added = { output_index: index, item: { ...open, content: [] } };
  yield {
    isOpening: true,
    text:
      frame("response.output_item.added", added) +
      frame("response.content_part.added", { ...inPart, part: part("") }),
  };
  for (const delta of textOf(wording)) {
    const text = frame("response.output_text.delta", { ...inPart, delta, logprobs: [] });
    yield { isDelta: true, text };
  }
  const text = textOf(wording).join("");
  yield {
    text:
      frame("response.output_text.done", { ...inPart, text, logprobs: [] }) +
      frame("response.content_part.done", { ...inPart, part: part(text) }) +
      done(),
  };
}

const finishReasons = { stop: "stop", length: "length", content_filter: "content_filter" };

function chatUsage(usage: ScriptedUsage): Record<string, unknown> | null {
  return (
    usage && {
      prompt_tokens: usage.input_tokens,
      completion_tokens: usage.output_tokens,
      total_tokens: usage.total_tokens,
      ...(usage.input_tokens_details ? { prompt_tokens_details: usage.input_tokens_details } : {}),
      ...(usage.service_tier ? { service_tier: usage.service_tier } : {}),
    }
  );
}

function completion(seen: SeenRequest, wording: Wording): Record<string, unknown> {
  const message = wording.call
    ? {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: [{ id: "call_up_1", type: "function", function: wording.call }],
      }
    : { role: "assistant", content: textOf(wording).join(""), refusal: null };
  const finish = wording.call ? "tool_calls" : finishReasons[wording.finish ?? "stop"];
  const usage = chatUsage(usageOf(wording));
  return {
    id: "chatcmpl-up-1",
    object: "chat.completion",
    created: createdAt,
    model: wording.model ?? seen.body?.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    ...(usage ? { usage } : {}),
  };
}

function* chatParts(seen: SeenRequest, wording: Wording): Iterable<Part> {
  const withUsage = seen.body?.stream_options?.include_usage === true;
  const chunk = (choices: unknown[], usage: unknown = null) => {
    const value = {
      id: "chatcmpl-up-1",
      object: "chat.completion.chunk",
      created: createdAt,
      model: wording.model ?? seen.body?.model,
      choices,
      ...(withUsage ? { usage } : {}),
    };
    return `data: ${JSON.stringify(value)}\n\n`;
  };
  const choice = (delta: unknown, finish: string | null = null) => [
    { index: 0, delta, logprobs: null, finish_reason: finish },
  ];
  yield { isOpening: true, text: chunk(choice({ role: "assistant", content: "", refusal: null })) };
  if (wording.call) {
    const { name } = wording.call;
    const call = { index: 0, id: "call_up_1", type: "function", function: { name, arguments: "" } };
    yield { isOpening: true, text: chunk(choice({ tool_calls: [call] })) };
    for (const piece of wording.call.arguments.match(/.{1,6}/gs) ?? []) {
      const text = chunk(choice({ tool_calls: [{ index: 0, function: { arguments: piece } }] }));
      yield { isDelta: true, text };
    }
  } else {
    for (const content of textOf(wording))
      yield { isDelta: true, text: chunk(choice({ content })) };
  }
  const finish = wording.call ? "tool_calls" : finishReasons[wording.finish ?? "stop"];
  yield { text: chunk(choice({}, finish)) };
  const usage = chatUsage(usageOf(wording));
  yield { text: `${withUsage && usage ? chunk([], usage) : ""}data: [DONE]\n\n` };
}
