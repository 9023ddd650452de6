import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

/** Puts a chat completion together from the chunks of its stream. */
export class ChunkCollector {
  #head: JsonObject | undefined;
  #usage: JsonValue = null;
  #finish: JsonValue = null;
  #logprobs: JsonObject | null = null;
  readonly #message: JsonObject = { role: "assistant", content: null, refusal: null };

  add(chunk: JsonObject): void {
    this.#head ??= chunk;
    if (isJsonObject(chunk.usage)) this.#usage = chunk.usage;
    const choice = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (isJsonObject(choice)) this.#addChoice(choice);
  }

  /** The completion, with `usage` in the place of what the chunks say; undefined where no chunk said why it ended. */
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
      this.#logprobs = mergeDelta(this.#logprobs ?? {}, choice.logprobs);
    }
    if (isJsonObject(choice.delta)) mergeDelta(this.#message, choice.delta);
  }
}

/** Texts are appended, lists merged by `index` (or appended), the rest replaced. Changes and gives back `into`. */
function mergeDelta(into: JsonObject, delta: JsonObject): JsonObject {
  for (const [name, value] of Object.entries(delta)) {
    // JSON may have a field of this name; read as a property it is what every object shares.
    if (value === null || name === "__proto__") continue;
    const old = into[name];
    if (typeof value === "string" && typeof old === "string" && !wholeTexts.has(name)) {
      into[name] = old + value;
    } else if (Array.isArray(value)) {
      into[name] = mergeList(Array.isArray(old) ? old : [], value);
    } else if (isJsonObject(value)) {
      into[name] = mergeDelta(isJsonObject(old) ? old : {}, value);
    } else {
      into[name] = value;
    }
  }
  return into;
}

/** Texts that come in one piece, though some upstreams repeat them in every delta. */
const wholeTexts = new Set(["role", "id", "type", "name"]);

function mergeList(list: JsonValue[], added: readonly JsonValue[]): JsonValue[] {
  for (const value of added) {
    const index = isJsonObject(value) ? value.index : undefined;
    const old = list.find((one) => isJsonObject(one) && index !== undefined && one.index === index);
    if (isJsonObject(value) && isJsonObject(old)) mergeDelta(old, value);
    else list.push(isJsonObject(value) ? mergeDelta({}, value) : value);
  }
  return list;
}

/** Calls in a message have no `index`. */
function finished(message: JsonObject): JsonObject {
  if (!Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call) => {
    if (!isJsonObject(call)) return call;
    const { index: _index, ...rest } = call;
    return rest;
  });
  return { ...message, tool_calls: calls };
}
