// Makes the request of a chat from its settings, and finds faults in them.

import type { Model } from "../../types.ts";
import type { Ask } from "./chat-turns.ts";
import { schemaOf } from "./json-schema.ts";
import { numberOf, present } from "./setting-values.ts";
import type { Settings } from "./settings.ts";

/** The most texts of `stop` in Chat Completions. */
export const maxStops = 4;

export function stopsOf(text: string | undefined): string[] {
  return (text ?? "").split("\n").filter((line) => line !== "");
}

export function takesTools({ tools }: Model): boolean {
  return Array.isArray(tools) ? tools.length > 0 : tools === true;
}

/** The list of tools that the reader typed, or the reason in words why the text is none. */
export function toolsOf(
  model: Model,
  text: string | undefined,
): { list?: unknown[]; error?: string } {
  if (!text?.trim() || !takesTools(model)) return {};
  try {
    const list = JSON.parse(text);
    if (!Array.isArray(list)) return { error: "A list of tools begins with [ and ends with ]." };
    return list.length > 0 ? { list } : {};
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
}

/** Faults of the settings, in words, by their fields. A message with one is not sent. */
export function faultsOf(
  model: Model,
  settings: Settings,
): { tools?: string; schema?: string; stop?: string } {
  const tools = toolsOf(model, settings.tools).error;
  const schema = schemaOf(settings.schema).error;
  const isTooMany = stopsOf(settings.stop).length > maxStops;
  return {
    ...(tools !== undefined && { tools }),
    ...(schema !== undefined && { schema }),
    ...(isTooMany && { stop: `At most ${maxStops} lines.` }),
  };
}

/** The request for the next answer of a model. */
export function askOf(model: Model, settings: Settings, input: unknown[]): Ask {
  const stops = stopsOf(settings.stop);
  const { schema } = schemaOf(settings.schema);
  const body = present({
    model: model.id,
    instructions: settings.instructions,
    input: isPlain(input) ? input[0].content : input,
    max_output_tokens: numberOf(settings.maxOutput),
    reasoning:
      settings.effort && model.reasoningEfforts?.includes(settings.effort)
        ? { effort: settings.effort, summary: "auto" }
        : undefined,
    tools: toolsOf(model, settings.tools).list,
    temperature: numberOf(settings.temperature),
    top_p: numberOf(settings.topP),
    seed: numberOf(settings.seed),
    stop: stops.length > 0 ? stops : undefined,
    text: schema && { format: { type: "json_schema", name: "answer", schema } },
    stream: settings.stream === "no" ? undefined : true,
  });
  // Responses has no `stop`.
  return { body, isResponses: model.responsesCapable !== false && stops.length === 0 };
}

/** A single message of the reader may be sent as plain text. */
function isPlain(input: unknown[]): input is [{ content: string }] {
  const [first, ...rest] = input as { role?: string; content?: unknown }[];
  return rest.length === 0 && first?.role === "user" && typeof first.content === "string";
}
