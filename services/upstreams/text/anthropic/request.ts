// Translates a Responses request into one of Messages. Requests of Chat Completions come here as Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { takesField } from "../../anthropic/betas.ts";
import { conversationOf } from "./input.ts";
import { chosenTools, type TakenTools, type ToolNames, takeTools } from "./tools.ts";
import { untranslatable } from "./untranslatable.ts";

/** Facts that translating a request needs. */
export interface MessagesOptions {
  /** The upstream's beta features. */
  betas: readonly string[];
  /** The model's. */
  passParameters: readonly string[];
  /** The model refuses a choice that makes it call a tool. */
  refusesForcedTools?: boolean;
  /** Thinking from behind another beginning is dropped there. */
  dropsBlocks?: boolean;
}

/** A request in the form of Messages. */
export interface MessagesRequest {
  /** Without `model`, `max_tokens` and `stream`. */
  body: JsonObject;
  /** The properties of the request in the Responses format that have an effect. */
  sent: JsonObject;
  /** Nested properties that have none, by their path. */
  leftOut: readonly string[];
  tools: ToolNames;
}

/** Properties of Responses whose work another part does, or that mean nothing here. */
const carried: readonly string[] = [
  ...["input", "instructions", "max_output_tokens", "model", "parallel_tool_calls"],
  ...["prompt_cache_key", "reasoning", "store", "stream", "text", "tool_choice", "tools"],
];
/** Settings of sampling that only some models take. The catalog names them. */
const sampling: readonly string[] = ["temperature", "top_p", "top_k"];
/** A value of `include` that always has its effect: sealed state is a part of every answer. */
const alwaysIncluded = "reasoning.encrypted_content";

/**
 * A request in the Responses format in that of Messages. The result depends on the request and the options alone, so that a
 * conversation begins with the same bytes at each turn. Throws `Untranslatable`.
 */
export function* toMessages(
  asked: JsonObject,
  options: MessagesOptions,
): Generator<void, MessagesRequest> {
  const leftOut = new Set<string>();
  const taken: TakenTools = { tools: [], names: new Map() };
  takeTools(asked.tools, "tools", taken, leftOut);
  const { system, messages, hasThinking } = yield* conversationOf(asked.input, {
    instructions: asked.instructions,
    takesSystem: takesField(options.betas, "mid-conversation-"),
    ...{ taken, leftOut },
  });
  const { tools, choice } = chosenTools(asked, taken, options.refusesForcedTools === true);
  const isBound =
    hasThinking &&
    options.dropsBlocks === true &&
    takesField(options.betas, "thinking-binding-controls-");
  const sent = sentOf(asked, options);
  return {
    body: {
      // Caches are by prefix, in this order: tools, system, messages.
      ...(tools.length > 0 && { tools }),
      ...(choice && { tool_choice: choice }),
      ...(system.length > 0 && { system }),
      messages,
      ...thinkingOf(asked.reasoning, isBound),
      ...outputConfigOf(asked, leftOut),
      ...(asked.service_tier ? { service_tier: asked.service_tier } : {}),
      ...passedOf(asked, options),
    },
    sent,
    leftOut: [...leftOut],
    tools: taken.names,
  };
}

/** The properties with an effect. Refuses those whose absence would be a surprise. */
function sentOf(asked: JsonObject, options: MessagesOptions): JsonObject {
  const include = Array.isArray(asked.include) ? asked.include : [];
  if (include.some((one) => typeof one === "string" && one.endsWith(".logprobs"))) {
    untranslatable("include", "The model reports no log probabilities.");
  }
  const names = [
    ...carried,
    ...(include.every((one) => one === alwaysIncluded) ? ["include"] : []),
    ...(asked.truncation === "disabled" ? ["truncation"] : []),
    ...(asked.service_tier ? ["service_tier"] : []),
    ...Object.keys(passedOf(asked, options)),
  ];
  const found = names.filter((name) => Object.hasOwn(asked, name));
  return Object.fromEntries(found.map((name) => [name, asked[name] as JsonValue]));
}

/** Properties that go up under their own names, because the catalog names them. `*` means the settings of sampling. */
function passedOf(asked: JsonObject, { passParameters }: MessagesOptions): JsonObject {
  const names = passParameters.flatMap((name) => (name === "*" ? sampling : [name]));
  const found = names.filter((name) => !carried.includes(name) && (asked[name] ?? null) !== null);
  return Object.fromEntries(found.map((name) => [name, asked[name] as JsonValue]));
}

/** `reasoning` as `thinking`. Adaptive thinking needs no block of it before an open call, which callers of Chat cannot send. */
function thinkingOf(reasoning: JsonValue | undefined, isBound: boolean): JsonObject {
  const { effort, summary } = isJsonObject(reasoning) ? reasoning : {};
  if (effort === "none") return { thinking: { type: "disabled" } };
  const binding = isBound && { block_binding: { prefix_mismatch_behavior: "drop_block" } };
  if (!effort && !summary) {
    return binding ? { thinking: { type: "adaptive", ...binding } } : {};
  }
  const display = summary ? "summarized" : "omitted";
  return { thinking: { type: "adaptive", display, ...binding } };
}

/** The effort, and the shape of the answer. */
function outputConfigOf({ reasoning, text }: JsonObject, leftOut: Set<string>): JsonObject {
  const { effort } = isJsonObject(reasoning) ? reasoning : {};
  const config: JsonObject = {};
  if (effort && effort !== "none") config.effort = effort === "minimal" ? "low" : effort;
  const { format, verbosity } = isJsonObject(text) ? text : {};
  if (verbosity) leftOut.add("text.verbosity");
  if (isJsonObject(format) && format.type === "json_schema") {
    config.format = { type: "json_schema", schema: format.schema ?? {} };
  } else if (isJsonObject(format) && format.type !== "text") {
    untranslatable("text.format.type", "The model binds its answer to a json_schema alone.");
  }
  return Object.keys(config).length > 0 ? { output_config: config } : {};
}
