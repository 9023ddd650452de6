import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

/**
 * The text that a model generated, in answers and events of every protocol. Upstreams call its fields what they like
 * (`content`, `thinking`, `function_call.arguments`, `reasoning_details[].text` …), so every string counts but those that are
 * known to be something else: names of things, and bytes.
 */

/** Fields that hold no generated text, wherever they stand. */
const structure = new Set([
  "id",
  "type",
  "role",
  "status",
  "object",
  "index",
  "format",
  "phase",
  "call_id",
  "tool_call_id",
  "item_id",
  "container_id",
  "created_by",
  // What a search found, which is input.
  "annotations",
  "citations",
  "search_results",
  // Bytes in base64, and what only upstream can read.
  "audio",
  "images",
  "image_url",
  "signature",
  "encrypted_content",
  "logprobs",
]);
/** Fields of an output item that hold what a tool answered, which is input. */
const toolAnswers = new Set(["output", "outputs", "results", "result", "sources", "tools"]);

/** Generated text of one choice of a chat completion: of its delta, or its message. */
export function textOfChoice(choice: JsonObject): string {
  let text = "";
  cutThoughts(spokenBy(choice), Number.POSITIVE_INFINITY, (said) => {
    text += said;
  });
  return text;
}

/** Generated text of a `delta` of the Responses protocol: a string, or an object that holds some. */
export function textOfDelta(delta: JsonValue | undefined): string {
  return delta === undefined ? "" : textIn(delta, structure);
}

/** Generated text of a `.delta` event that is not known by its type; "" for any other event. */
export function textOfDeltaEvent({ type, delta }: JsonObject): string {
  const isSpoken = `${type}`.endsWith(".delta") && type !== "response.audio.delta";
  return isSpoken ? textOfDelta(delta) : "";
}

/** Generated text of the items of a response or a compaction: text, refusals, reasoning, calls. */
export function textOfItems(items: readonly JsonValue[]): string {
  return items.map(textOfItem).join("");
}

/** Generated text of one output item. */
export function textOfItem(item: JsonValue): string {
  return isGenerated(item) ? textIn(item, itemStructure) : "";
}

const itemStructure = new Set([...structure, ...toolAnswers]);

/** Compaction keeps the caller's own messages; those were not generated. */
function isGenerated(item: JsonValue): boolean {
  if (!isJsonObject(item)) return false;
  return item.role === undefined || item.role === null || item.role === "assistant";
}

function textIn(value: JsonValue, without: ReadonlySet<string>): string {
  let text = "";
  cut(value, Number.POSITIVE_INFINITY, without, (said) => {
    text += said;
  });
  return text;
}

/**
 * Generated text of an upstream's complete answer, or of one of its events, before anything was made of it; for events
 * that repeat what was streamed before, with that.
 */
export function textOfAnswer(answer: JsonObject): string {
  if (Array.isArray(answer.choices)) {
    return answer.choices.filter(isJsonObject).map(textOfChoice).join("");
  }
  if (Array.isArray(answer.output)) return textOfItems(answer.output);
  if (isJsonObject(answer.response)) return textOfAnswer(answer.response);
  if (answer.item !== undefined) return textOfItem(answer.item);
  return eventTexts.map((name) => textOfDelta(answer[name])).join("");
}

/** Fields of the Responses protocol's events that hold text. */
const eventTexts = ["delta", "text", "refusal", "arguments", "input", "code", "part"];

/**
 * What {@link textOfAnswer} read, with no more than `characters` of its text, as an answer that reached the bound of its
 * output. Items and parts behind the cut are left out.
 */
export function cutAnswer(answer: JsonObject, characters: number): JsonObject {
  if (Array.isArray(answer.choices)) {
    let left = characters;
    const choices = answer.choices.filter(isJsonObject).map((choice) => {
      const said = cutThoughts(spokenBy(choice), left);
      left = said.left;
      const name = choice.delta === undefined ? "message" : "delta";
      const finish = name === "message" ? { finish_reason: "length" } : {};
      return { ...choice, [name]: said.value, ...finish };
    });
    return { ...answer, choices };
  }
  if (Array.isArray(answer.output)) {
    const { value } = cutItems(answer.output, characters);
    if (answer.object === "response.compaction") return { ...answer, output: value };
    return { ...answer, ...endedEarly, output: value };
  }
  if (isJsonObject(answer.response)) {
    const response = cutAnswer(answer.response, characters);
    return { ...answer, type: "response.incomplete", response };
  }
  if (answer.item !== undefined) {
    return { ...answer, item: cutItem(answer.item, characters).value };
  }
  const cutFields: JsonObject = {};
  let left = characters;
  for (const name of eventTexts) {
    if (answer[name] === undefined) continue;
    const said = cut(answer[name], left, structure);
    cutFields[name] = said.value;
    left = said.left;
  }
  return { ...answer, ...cutFields };
}

const endedEarly = {
  status: "incomplete",
  incomplete_details: { reason: "max_output_tokens" },
} as const;

function cutItems(items: readonly JsonValue[], characters: number): Cut {
  const value: JsonValue[] = [];
  let left = characters;
  for (const item of items) {
    if (left <= 0) break;
    const said = cutItem(item, left);
    value.push(said.value);
    left = said.left;
  }
  return { value, left };
}

function cutItem(item: JsonValue, characters: number): Cut {
  if (!isGenerated(item) || !isJsonObject(item)) return { value: item, left: characters };
  const said = cut(item, characters, itemStructure);
  if (said.left > 0 || !isJsonObject(said.value) || item.status === undefined) return said;
  return { ...said, value: { ...said.value, status: "incomplete" } };
}

function spokenBy({ delta, message }: JsonObject): JsonObject {
  if (isJsonObject(delta)) return delta;
  return isJsonObject(message) ? message : {};
}

interface Cut<T extends JsonValue = JsonValue> {
  value: T;
  /** Characters that may still follow. */
  left: number;
}

/** As {@link cut}; what is thought counts once, though routers say it in two fields (`reasoning`, `reasoning_details`). */
function cutThoughts(
  spoken: JsonObject,
  characters: number,
  said?: (text: string) => void,
): Cut<JsonObject> {
  const value: JsonObject = {};
  const thoughts = new Map<string, number>();
  let left = characters;
  for (const [name, field] of Object.entries(spoken)) {
    if (structure.has(name)) {
      value[name] = field;
      continue;
    }
    const text = /^(?:reason|think)/.test(name) ? textIn(field, structure) : "";
    const before = text === "" ? undefined : thoughts.get(text);
    if (before !== undefined) {
      value[name] = cut(field, before, structure).value;
      continue;
    }
    if (text !== "") thoughts.set(text, left);
    const part = cut(field, left, structure, said);
    value[name] = part.value;
    left = part.left;
  }
  return { value, left };
}

/** A value with at most so many characters of text in it; `said` is called with each that stays. */
function cut(
  value: JsonValue,
  characters: number,
  without: ReadonlySet<string>,
  said?: (text: string) => void,
): Cut {
  if (typeof value === "string") {
    const kept = value.length <= characters ? value : wholeCharacters(value, characters);
    said?.(kept);
    return { value: kept, left: characters - kept.length };
  }
  let left = characters;
  if (Array.isArray(value)) {
    const kept: JsonValue[] = [];
    for (const item of value) {
      if (left <= 0) break;
      const part = cut(item, left, without, said);
      kept.push(part.value);
      left = part.left;
    }
    return { value: kept, left };
  }
  if (!isJsonObject(value)) return { value, left };
  const kept: JsonObject = {};
  const isSealed = value.type === "reasoning.encrypted";
  for (const [name, field] of Object.entries(value)) {
    const part =
      isSealed || without.has(name) ? { value: field, left } : cut(field, left, without, said);
    kept[name] = part.value;
    left = part.left;
  }
  return { value: kept, left };
}

/** The first characters of a text, no half of one among them. */
function wholeCharacters(text: string, characters: number): string {
  const end = Math.max(0, characters);
  const code = text.charCodeAt(end);
  return text.slice(0, code >= 0xdc00 && code <= 0xdfff ? Math.max(0, end - 1) : end);
}
