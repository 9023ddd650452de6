// The page asks by `/responses` or `/chat/completions`. This file turns its request into one of Anthropic's Messages, to show as code.

import type { GivenItem, GivenPart } from "./completions.ts";
import { present } from "./setting-values.ts";

/** Tokens of an answer at most, where the reader has set no bound. Messages must have one. */
const usualMaxTokens = 4_096;

type Block = Record<string, unknown>;
interface Message {
  role: string;
  content: string | Block[];
}

/** The body of `/messages` for the same request as a body of `/responses`. Undefined where it has audio, which Messages does not know. */
export function messagesBody(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const { model, instructions, input, max_output_tokens, reasoning, tools, text } = body;
  const { temperature, top_p, stop, stream } = body;
  const items = (
    typeof input === "string" ? [{ role: "user", content: input }] : input
  ) as GivenItem[];
  if (items.some(hasAudio)) return undefined;
  const messages: Message[] = [];
  for (const item of items) addItem(messages, item);
  const effort = (reasoning as { effort: string } | undefined)?.effort;
  const schema = (text as { format: { schema: unknown } } | undefined)?.format.schema;
  const config = present({ effort, format: schema && { type: "json_schema", schema } });
  return present({
    model,
    max_tokens: max_output_tokens ?? usualMaxTokens,
    system: instructions,
    messages,
    tools: (tools as Block[] | undefined)?.map(toolOf),
    thinking: effort && { type: "adaptive" },
    output_config: Object.keys(config).length > 0 ? config : undefined,
    ...{ temperature, top_p, stop_sequences: stop, stream },
  });
}

/** Adds an item to the messages. The blocks of one role that follow each other are one message. */
function addItem(messages: Message[], item: GivenItem): void {
  const { type, role, content = "" } = item;
  if (type === "function_call") add(messages, "assistant", [callOf(item)]);
  else if (type === "function_call_output") {
    const { call_id: tool_use_id, output } = item;
    add(messages, "user", [{ type: "tool_result", tool_use_id, content: output }]);
  } else if (role !== undefined && content !== "") {
    // Reasoning has no role, and is not repeated to the model.
    add(messages, role, typeof content === "string" ? content : content.map(blockOf));
  }
}

function add(messages: Message[], role: string, content: string | Block[]): void {
  const last = messages.at(-1);
  if (last?.role !== role) messages.push({ role, content });
  else last.content = [...blocksOf(last.content), ...blocksOf(content)];
}

function blocksOf(content: string | Block[]): Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function callOf({ call_id: id, name, arguments: given = "" }: GivenItem): Block {
  return { type: "tool_use", id, name, input: inputOf(given) };
}

/** Messages has an object. Arguments of a model that are no JSON, such as those of an answer that was cut, have no counterpart. */
function inputOf(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return {};
  }
}

function hasAudio({ content }: GivenItem): boolean {
  return Array.isArray(content) && content.some(({ type }) => type === "input_audio");
}

function blockOf({ text = "", image_url, filename: title, file_data }: GivenPart): Block {
  const url = image_url ?? file_data;
  if (url === undefined) return { type: "text", text };
  const [, media_type, data] = /^data:([\w/+.-]+);base64,(.*)$/s.exec(url) ?? [];
  const source = data === undefined ? { type: "url", url } : { type: "base64", media_type, data };
  return image_url === undefined ? { type: "document", source, title } : { type: "image", source };
}

/** A function in the form of Messages. Tools of other types have no counterpart there, and are shown as they are. */
function toolOf(tool: Block): Block {
  if (tool.type !== "function") return tool;
  const { name, description, parameters, strict } = tool;
  return present({ name, description, input_schema: parameters ?? { type: "object" }, strict });
}
