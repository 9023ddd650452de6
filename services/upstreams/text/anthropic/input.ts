// Translates the input of a Responses request, item by item, into the conversation of a Messages request. `turns.ts` keeps its
// order.

import { createHash } from "node:crypto";
import { exactObject } from "#kit/base/exact-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { blockOf } from "./carrier.ts";
import { blocksOf, textBlocks } from "./content.ts";
import { customInput, nameThere, type TakenTools, takeTools } from "./tools.ts";
import { Turns } from "./turns.ts";
import { invalid, untranslatable } from "./untranslatable.ts";

/** Items that are translated before other work has its turn. They take a few ms. */
const itemsAtOnce = 1_000;
/** Characters of arguments that are parsed before other work has its turn. They take some ms. */
const charactersAtOnce = 32 * 1024;
/**
 * Names and values in the arguments of one call, by commas, colons and brackets. They are parsed in one turn, in some 25 ms. No model
 * writes more.
 */
const maxArgumentMarks = 20_000;

/** A conversation in the form of Messages. */
export interface Conversation {
  /** Blocks that stand before all turns. */
  system: JsonObject[];
  messages: JsonObject[];
  /** Has a turn of the model its thinking in it? */
  hasThinking: boolean;
}

/** Facts that translating the input needs. */
export interface InputOptions {
  instructions: JsonValue | undefined;
  takesSystem: boolean;
  /** Gets tools that items of the input add. */
  taken: TakenTools;
  leftOut: Set<string>;
}

/** The input of a request in the Responses format as a conversation. Throws `Untranslatable`. */
export function* conversationOf(
  input: JsonValue | undefined,
  options: InputOptions,
): Generator<void, Conversation> {
  const reader = new InputReader(options);
  if (typeof input === "string") reader.message({ role: "user", content: input }, "input");
  let left = charactersAtOnce;
  for (const [index, item] of (Array.isArray(input) ? input : []).entries()) {
    if ((index > 0 && index % itemsAtOnce === 0) || left < 0) {
      left = charactersAtOnce;
      yield;
    }
    if (!isJsonObject(item)) continue;
    reader.item(item, `input[${index}]`);
    if (typeof item.arguments === "string") left -= item.arguments.length;
  }
  return reader.conversation();
}

class InputReader {
  readonly #options: InputOptions;
  readonly #turns: Turns;
  readonly #system: JsonObject[];
  #hasThinking = false;

  constructor(options: InputOptions) {
    this.#options = options;
    this.#turns = new Turns(options.takesSystem);
    this.#system = textBlocks(options.instructions);
  }

  conversation(): Conversation {
    if (this.#turns.isEmpty) invalid("input", "The model needs a message of the user.");
    const messages = this.#turns.messages();
    return { system: this.#system, messages, hasThinking: this.#hasThinking };
  }

  item(item: JsonObject, param: string): void {
    switch (item.type) {
      case undefined:
      case "message":
        this.message(item, param);
        break;
      case "reasoning":
        this.#reasoning(item, param);
        break;
      case "function_call":
        this.#call(item, inputOf(item, `${param}.arguments`), param);
        break;
      case "custom_tool_call":
        this.#call(item, customInput(item.input), param);
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        this.#result(item, param);
        break;
      case "additional_tools":
        takeTools(item.tools, `${param}.tools`, this.#options.taken, this.#options.leftOut);
        break;
      default:
        untranslatable(`${param}.type`, "The model takes no items of this type. Leave it out.");
    }
  }

  message({ role, content, phase }: JsonObject, param: string): void {
    if (phase) this.#options.leftOut.add("input.phase");
    const blocks = blocksOf(content, `${param}.content`, this.#options.leftOut);
    if (role === "assistant") {
      const strange = blocks.findIndex(({ type }) => type !== "text");
      if (strange !== -1) {
        untranslatable(`${param}.content`, "The model's own turns hold texts alone.");
      }
      this.#turns.assistant(blocks, param);
    } else if (role === "user") this.#turns.user(blocks);
    else if (this.#turns.isEmpty) this.#system.push(...blocks);
    else this.#turns.system(blocks);
  }

  /** Thinking of another maker says nothing to this model. */
  #reasoning({ encrypted_content: state }: JsonObject, param: string): void {
    const block = blockOf(state);
    if (!block) return;
    this.#hasThinking = true;
    this.#turns.assistant([block], param);
  }

  #call({ call_id: id, name, namespace }: JsonObject, input: JsonObject, param: string): void {
    const named = nameThere(typeof name === "string" ? name : "", namespace);
    const known = callId(id);
    this.#turns.call(known, { type: "tool_use", id: known, name: named, input }, param);
  }

  #result({ call_id: id, output }: JsonObject, param: string): void {
    const known = callId(id);
    const isText = typeof output === "string";
    const content = isText ? output : blocksOf(output, `${param}.output`, this.#options.leftOut);
    const block = { type: "tool_result", tool_use_id: known, content };
    this.#turns.result(known, block, param);
  }
}

function inputOf({ arguments: text }: JsonObject, param: string): JsonObject {
  if (text === "") return {};
  const marks = maxArgumentMarks;
  const input = typeof text === "string" ? exactObject(text, { marks }) : undefined;
  const rule = `a JSON object with at most ${marks} names and values`;
  return input ?? invalid(param, `The arguments of a call must be ${rule}.`);
}

/** Ids of calls that Anthropic takes. */
const plainId = /^[a-zA-Z0-9_-]+$/;

/** The id of a call in Messages. One in another alphabet becomes a hash, the same for the call and its result. */
function callId(id: JsonValue | undefined): string {
  const text = typeof id === "string" ? id : "";
  if (plainId.test(text)) return text;
  return `call_${createHash("sha256").update(text).digest("base64url").slice(0, 32)}`;
}
