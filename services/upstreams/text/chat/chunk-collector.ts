// Adds the chunks of a chat stream up to a whole completion: for answers that are kept, and for upstreams that only stream.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** Puts a chat completion together from the chunks of its stream. */
export class ChunkCollector {
  #head: JsonObject | undefined;
  #usage: JsonValue = null;
  #finish: JsonValue = null;
  #logprobs: JsonObject | null = null;
  readonly #message: JsonObject = { role: "assistant", content: null, refusal: null };
  #characters = 0;

  /** Characters of the collected parts. The completion has at least as many bytes. */
  get characters(): number {
    return this.#characters;
  }

  add(chunk: JsonObject): void {
    this.#head ??= chunk;
    if (isJsonObject(chunk.usage)) this.#usage = chunk.usage;
    const choice = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (isJsonObject(choice)) this.#addChoice(choice);
  }

  /** The completion, with `usage` instead of the usage in the chunks. Undefined where no chunk had a reason for its end. */
  completion(usage: JsonValue | undefined): JsonObject | undefined {
    if (!this.#head || this.#finish === null) return undefined;
    const { choices: _choices, usage: _usage, ...rest } = this.#head;
    const message = finished(this.#message);
    const logprobs = this.#logprobs;
    return {
      ...rest,
      object: "chat.completion",
      choices: [{ index: 0, message, logprobs, finish_reason: this.#finish }],
      usage: usage ?? this.#usage,
    };
  }

  #addChoice(choice: JsonObject): void {
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    if (isJsonObject(choice.logprobs)) {
      this.#logprobs ??= {};
      this.#characters += mergeDelta(this.#logprobs, choice.logprobs);
    }
    if (isJsonObject(choice.delta)) this.#characters += mergeDelta(this.#message, choice.delta);
  }
}

/**
 * Texts are appended, lists are merged by `index` (or appended), and other values are replaced. Changes `into`. Answers how many
 * characters it grew by.
 */
function mergeDelta(into: JsonObject, delta: JsonObject): number {
  let more = 0;
  for (const [name, value] of Object.entries(delta)) {
    // JSON may have a field of this name. As a property it would be the prototype that all objects share.
    if (value === null || name === "__proto__") continue;
    const old = into[name] ?? null;
    if (old === null) more += name.length;
    if (typeof value === "string" && typeof old === "string" && !wholeTexts.has(name)) {
      into[name] = old + value;
      more += value.length;
    } else if (Array.isArray(value)) {
      const list = Array.isArray(old) ? old : [];
      more += mergeList(list, value);
      into[name] = list;
    } else if (isJsonObject(value)) {
      const object = isJsonObject(old) ? old : {};
      more += mergeDelta(object, value);
      into[name] = object;
    } else {
      into[name] = value;
      if (old === null) more += charactersOf(value);
    }
  }
  return more;
}

/** Texts that come in one piece. Some upstreams repeat them in every delta. */
const wholeTexts = new Set([
  ...["role", "id", "type", "name"],
  ...["format", "data", "signature", "thought_signature"],
]);

function mergeList(list: JsonValue[], added: readonly JsonValue[]): number {
  let more = 0;
  for (const value of added) {
    const old = isJsonObject(value) ? goesOnWith(list, value) : undefined;
    if (isJsonObject(value) && old) {
      more += mergeDelta(old, value);
      continue;
    }
    more += charactersOf(value);
    if (isJsonObject(value)) {
      const object: JsonObject = {};
      more += mergeDelta(object, value);
      list.push(object);
      noteBegun(list, object);
    } else list.push(value);
  }
  return more;
}

/** An entry of sealed reasoning is complete. OpenRouter gives those of several calls one index. */
const isWhole = ({ type }: JsonObject) => type === "reasoning.encrypted";

/**
 * The entries of a list that later pieces may continue, by index. A search through the list for each piece would take the square of its
 * length.
 */
const begun = new WeakMap<readonly JsonValue[], Map<JsonValue, JsonObject[]>>();
/** The most entries of one index. Reasoning has its text, its summary, and an entry without a type. */
const mostOfIndex = 8;

function noteBegun(list: readonly JsonValue[], entry: JsonObject): void {
  if (entry.index === undefined || isWhole(entry)) return;
  const byIndex = begun.get(list) ?? new Map<JsonValue, JsonObject[]>();
  begun.set(list, byIndex);
  const entries = byIndex.get(entry.index) ?? [];
  if (entries.length < mostOfIndex) byIndex.set(entry.index, [...entries, entry]);
}

/**
 * The entry that a new one continues: it has the same index, and no other type. Undefined: the new one begins an entry. Entries without
 * an index always do (log probabilities).
 */
function goesOnWith(list: readonly JsonValue[], entry: JsonObject): JsonObject | undefined {
  const { index, type } = entry;
  if (index === undefined || isWhole(entry)) return undefined;
  const entries = begun.get(list)?.get(index);
  return entries?.find((one) => (type ?? one.type ?? type) === (one.type ?? type));
}

/** The length of a text. At least one for any other value. */
function charactersOf(value: JsonValue): number {
  return typeof value === "string" ? value.length : 1;
}

/** The finished message. Its calls have no `index`. */
function finished(message: JsonObject): JsonObject {
  if (!Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call) => {
    if (!isJsonObject(call)) return call;
    const { index: _index, ...rest } = call;
    return rest;
  });
  return { ...message, tool_calls: calls };
}
