// Notes the output of an answer that its text does not show: sealed reasoning, and calls of tools at the upstream. Metering
// counts with it.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { textOfItem, thoughtOfChoice } from "../generated-text.ts";
import { hostResults } from "../host-tools.ts";
import { bareText } from "../responses/bare-output.ts";
import { BlockCalls, CallCounter, callsOf, mostCalls, type ToolCalls } from "./tool-calls.ts";

/** Facts about output that an answer did not show, mostly reasoning. */
export interface Unseen {
  /** Reasoning and state that only the upstream can read, in characters of base64. */
  sealedCharacters: number;
  /** Characters of reasoning that was shown. Where they are more than the hidden ones, they were counted already. */
  shownCharacters: number;
  /** Items of reasoning that showed neither text nor sealed state. */
  silentItems: number;
  /** Items of tools that the upstream carried out, whose results became input. Undefined where the protocol does not report them. */
  hostedCalls?: number | undefined;
  /** Their calls that may have a price, by the family of the tool. Absent: none. */
  toolCalls?: ToolCalls | undefined;
}

/** Notes the hidden output of one stream. */
export class UnseenNotes implements Unseen {
  sealedCharacters = 0;
  silentItems = 0;
  #shown = 0;
  /**
   * Counted by the first events of the items, by their last events, and by the answer's end. Undefined where nothing reported items.
   */
  #hosted: { begun: number; done: number; whole: number } | undefined;
  /** Characters of the reasoning item that is under way. */
  #shownNow = 0;
  /** Calls by the last events of their items, and by the answer's end. */
  #calls: { done: CallCounter; whole: ToolCalls } | undefined;
  /** Calls in the blocks of Messages. */
  #blocks: BlockCalls | undefined;

  get shownCharacters(): number {
    return this.#shown + this.#shownNow;
  }

  get hostedCalls(): number | undefined {
    if (this.#blocks) return this.#blocks.all;
    return this.#hosted && Math.max(this.#hosted.begun, this.#hosted.done, this.#hosted.whole);
  }

  get toolCalls(): ToolCalls | undefined {
    if (this.#blocks && this.#blocks.all > 0) return this.#blocks.counts;
    return this.#calls && mostCalls(this.#calls.done.counts, this.#calls.whole);
  }

  /** Notes an event of the Responses protocol. */
  noteEvent(event: JsonObject): void {
    this.#hosted ??= { begun: 0, done: 0, whole: 0 };
    const type = `${event.type}`;
    if (type.endsWith(".delta")) this.#noteDelta(type, event.delta);
    else if (isJsonObject(event.item)) this.#noteItem(type, event.item);
    else if (isJsonObject(event.response) && Array.isArray(event.response.output)) {
      if (bareText(event.response) !== undefined) return;
      const { sealedCharacters, shownCharacters, silentItems, hostedCalls, toolCalls } = unseenOf(
        event.response,
      );
      if (toolCalls) {
        this.#calls ??= { done: new CallCounter(), whole: {} };
        this.#calls.whole = mostCalls(this.#calls.whole, toolCalls);
      }
      this.#hosted.whole = Math.max(this.#hosted.whole, hostedCalls ?? 0);
      this.silentItems = Math.max(this.silentItems, silentItems);
      this.sealedCharacters = Math.max(this.sealedCharacters, sealedCharacters);
      this.#shown = Math.max(this.#shown, shownCharacters);
    }
  }

  /** Notes an event of Messages. */
  noteMessage({ delta, content_block: block }: JsonObject): void {
    this.#blocks ??= new BlockCalls();
    if (isJsonObject(block)) {
      this.#blocks.note(block);
      if (hostResults.has(block.type)) return;
    }
    const found = delta ?? block;
    if (!isJsonObject(found)) return;
    this.sealedCharacters += sealedIn(found);
    if (typeof found.thinking === "string") this.#shown += found.thinking.length;
  }

  /** Notes a chunk of a chat completion. */
  noteChunk(chunk: JsonObject): void {
    const { sealedCharacters, shownCharacters } = unseenOf(chunk);
    this.sealedCharacters += sealedCharacters;
    this.#shown += shownCharacters;
  }

  #noteDelta(type: string, delta: JsonValue | undefined): void {
    const isThought = type.startsWith("response.reasoning");
    if (isThought && typeof delta === "string") this.#shownNow += delta.length;
  }

  #noteItem(type: string, item: JsonObject): void {
    const isReasoning = item.type === "reasoning";
    const isDone = type === "response.output_item.done";
    if (this.#hosted && isHosted(item)) {
      this.#hosted[isDone ? "done" : "begun"]++;
      if (isDone) {
        this.#calls ??= { done: new CallCounter(), whole: {} };
        this.#calls.done.note(item);
      }
    }
    if (!isDone) return;
    const sealed = sealedIn(item);
    this.sealedCharacters += sealed;
    if (!isReasoning) return;
    const shown = Math.max(this.#shownNow, textOfItem(item).length);
    if (sealed === 0 && shown === 0) this.silentItems++;
    this.#shown += shown;
    this.#shownNow = 0;
  }
}

/** Nothing is hidden in an answer that reports its items. */
export const nothingUnseen: Readonly<Unseen> = {
  sealedCharacters: 0,
  shownCharacters: 0,
  silentItems: 0,
  hostedCalls: 0,
};

/** The hidden output of a complete answer, or of one chunk, of either protocol. */
export function unseenOf(answer: JsonObject): Unseen {
  const choices = Array.isArray(answer.choices) ? answer.choices.filter(isJsonObject) : [];
  const items = Array.isArray(answer.output) ? answer.output.filter(isJsonObject) : [];
  const blocks = Array.isArray(answer.content) ? answer.content.filter(isJsonObject) : [];
  const thoughts = [
    ...blocks.map(({ thinking }) => (typeof thinking === "string" ? thinking : "")),
    ...items.filter(({ type }) => type === "reasoning").map(textOfItem),
    ...choices.map(thoughtOfChoice),
  ];
  const hosted = items.filter(isHosted);
  const reported = Array.isArray(answer.output) ? hosted.length : undefined;
  const ofHost = blocks.length > 0 ? new BlockCalls() : undefined;
  for (const block of blocks) ofHost?.note(block);
  const own = blocks.filter(({ type }) => !hostResults.has(type));
  return {
    sealedCharacters: sealedIn(choices) + sealedIn(items) + sealedIn(own),
    shownCharacters: thoughts.reduce((sum, { length }) => sum + length, 0),
    silentItems: items.filter(isSilent).length,
    hostedCalls: ofHost?.all ?? reported,
    ...(hosted.length > 0 && { toolCalls: callsOf(hosted) }),
    ...(ofHost && ofHost.all > 0 && { toolCalls: ofHost.counts }),
  };
}

/** Types of items that are not the work of a tool of the upstream. */
const ownTypes: ReadonlySet<JsonValue | undefined> = new Set([
  ...[
    undefined,
    "message",
    "mcp_approval_request",
    "reasoning",
    "compaction",
    "compaction_summary",
  ],
  ...["function_call", "custom_tool_call", "local_shell_call", "apply_patch_call"],
  "computer_call",
]);

function isHosted({ type }: JsonObject): boolean {
  return !ownTypes.has(type);
}

function isSilent(item: JsonObject): boolean {
  return item.type === "reasoning" && sealedIn(item) === 0 && textOfItem(item) === "";
}

/** Fields whose text the upstream sealed. */
const sealedFields = new Set(["encrypted_content", "signature", "thought_signature"]);
/** Types of objects whose `data` is sealed reasoning: OpenRouter's, and Anthropic's. */
const sealedTypes: ReadonlySet<JsonValue | undefined> = new Set([
  ...["reasoning.encrypted", "redacted_thinking"],
]);
/** Items nest parts, and parts nest little more. Calls of chat nest `extra_content`. Deeper values are the model's own data. */
const maxDepth = 6;

function sealedIn(value: JsonObject | readonly JsonValue[], depth = 0): number {
  if (depth > maxDepth) return 0;
  let sum = 0;
  if (Array.isArray(value)) {
    for (const entry of value)
      if (typeof entry === "object" && entry !== null) sum += sealedIn(entry, depth + 1);
    return sum;
  }
  const object = value as JsonObject;
  const hasData = sealedTypes.has(object.type);
  for (const name in object) {
    const field = object[name];
    if (typeof field === "object" && field !== null) sum += sealedIn(field, depth + 1);
    else if (typeof field !== "string") continue;
    else if (sealedFields.has(name) || (hasData && name === "data")) sum += field.length;
  }
  return sum;
}
