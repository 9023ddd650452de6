// Finds the text that a model generated, in answers and events of every protocol, so that it can be counted or cut. Upstreams use
// many names for its fields (`content`, `thinking`, `function_call.arguments`, `reasoning_details[].text` …). So every string
// counts, except those that are known to be names of things, or bytes.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { hostResults } from "./host-tools.ts";

/** Fields at any depth that hold no generated text. */
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
  // Results of a search, which are input.
  "annotations",
  "citation",
  "citations",
  "search_results",
  // Bytes in base64, and state that only the upstream can read.
  "images",
  "image_url",
  "signature",
  "thought_signature",
  "encrypted_content",
  "logprobs",
]);
/** Fields of an event that hold no generated text of its own. */
const eventStructure = new Set([
  ...structure,
  ...["annotation", "error", "event_id", "item", "message", "model", "obfuscation", "param"],
  ...["partial_image_b64", "response", "response_id", "service_tier", "system_fingerprint"],
]);
/** Fields beside a choice's delta or message into which some servers put its text. */
const besides = ["text", "content", "refusal", "reasoning", "reasoning_content"];
/** Fields of an output item that hold the answer of a tool, which is input. */
const toolAnswers = new Set(["output", "outputs", "results", "result", "sources", "tools"]);

/** Generated text of one choice of a chat completion, from its delta or its message. */
export function textOfChoice(choice: JsonObject): string {
  const spoken = spokenBy(choice);
  let text = "";
  let thoughts: Set<string> | undefined;
  for (const name in spoken) {
    if (structure.has(name)) continue;
    const said = textOfField(name, spoken[name] as JsonValue, structure);
    if (isThought(name) && said !== "") {
      thoughts ??= new Set();
      if (thoughts.has(said)) continue;
      thoughts.add(said);
    }
    text += said;
  }
  return text === "" ? besideIn(choice).text : text;
}

/** Text beside a delta or message that has none, and the name of its field. */
function besideIn(choice: JsonObject): { name: string; text: string } {
  for (const name of besides) {
    const text = choice[name];
    if (typeof text === "string" && text !== "") return { name, text };
  }
  return { name: "", text: "" };
}

/** The reasoning in the text of a choice. */
export function thoughtOfChoice(choice: JsonObject): string {
  const spoken = spokenBy(choice);
  const thoughts = new Set<string>();
  for (const name in spoken) {
    if (isThought(name)) thoughts.add(textIn(spoken[name] as JsonValue, structure));
  }
  return [...thoughts].join("");
}

/**
 * Is it a field of reasoning? Routers repeat a model's reasoning in several fields (`reasoning`, `reasoning_details`). It counts once.
 */
function isThought(name: string): boolean {
  return name.startsWith("reason") || name.startsWith("think");
}

/** Generated text of a `.delta` event, in fields of any name. "" for any other event. */
export function textOfDeltaEvent(event: JsonObject): string {
  return `${event.type}`.endsWith(".delta") ? textOfEvent(event) : "";
}

/** Generated text of an event of the Responses protocol beside its item or response, in fields of any name. */
export function textOfEvent(event: JsonObject): string {
  if (textlessTypes.has(event.type)) return "";
  // Beside a delta, servers repeat the text that they have sent so far.
  if (typeof event.delta === "string" && event.delta !== "") return event.delta;
  let text = "";
  for (const name in event) {
    if (!eventStructure.has(name)) text += textOfField(name, event[name] as JsonValue, structure);
  }
  return text;
}

/** Events whose delta is audio in base64, and those of Messages that are about a message as a whole. */
const textlessTypes: ReadonlySet<JsonValue | undefined> = new Set([
  ...["response.audio.delta", "response.output_audio.delta"],
  ...["message_start", "message_delta", "message_stop"],
]);

/** Generated text of the items of a response: text, refusals, reasoning, calls. */
export function textOfItems(items: readonly JsonValue[]): string {
  return items.map(textOfItem).join("");
}

/** Generated text of the items of a compaction. A compaction keeps the caller's own messages, which were not generated. */
export function textOfCompacted(items: readonly JsonValue[]): string {
  return items.map((item) => (isCallers(item) ? "" : textOfItem(item))).join("");
}

/** Generated text of one output item of any role. The item may be any value. */
export function textOfItem(item: JsonValue): string {
  return textIn(item, itemStructure);
}

const itemStructure = new Set([...structure, ...toolAnswers]);
const callersRoles: ReadonlySet<JsonValue | undefined> = new Set(["user", "system", "developer"]);

function isCallers(item: JsonValue): boolean {
  return isJsonObject(item) && callersRoles.has(item.role);
}

function textIn(value: JsonValue, without: ReadonlySet<string>): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value) text += textIn(item, without);
  } else if (!isTextless(value)) {
    for (const name in value) {
      if (without.has(name)) continue;
      const field = value[name] as JsonValue;
      const isText = typeof field === "string" && name !== "audio";
      text += isText ? field : textOfField(name, field, without);
    }
  }
  return text;
}

/** Text of one field. Only the transcript of audio counts. Arguments are JSON, also where a server has parsed them. */
function textOfField(name: string, value: JsonValue, without: ReadonlySet<string>): string {
  if (name === "audio") return isJsonObject(value) ? textIn(value.transcript ?? "", without) : "";
  if (name === "arguments" && isJsonObject(value)) return JSON.stringify(value);
  return textIn(value, without);
}

/** Is it reasoning that only the upstream can read, or the result of a tool that the upstream ran, which is input? */
function isTextless({ type }: JsonObject): boolean {
  return type === "reasoning.encrypted" || type === "redacted_thinking" || hostResults.has(type);
}

/**
 * Generated text of an upstream's complete answer, or of one of its events, before any change. Text that an event repeats from earlier
 * ones is included.
 */
export function textOfAnswer(answer: JsonObject): string {
  if (Array.isArray(answer.choices)) {
    return answer.choices.filter(isJsonObject).map(textOfChoice).join("");
  }
  if (Array.isArray(answer.output)) {
    return answer.object === compacted
      ? textOfCompacted(answer.output)
      : textOfItems(answer.output);
  }
  if (isMessage(answer)) return textIn(answer.content ?? null, structure);
  if (isJsonObject(answer.response)) return textOfAnswer(answer.response);
  if (answer.item !== undefined) return textOfItem(answer.item);
  return textOfEvent(answer);
}

const compacted = "response.compaction";

/** Is it a whole message of Messages? */
function isMessage({ type, content }: JsonObject): boolean {
  return type === "message" && Array.isArray(content);
}

/**
 * An answer with no more than `characters` of the text that {@link textOfAnswer} reads, as an answer that reached the bound of its
 * output. Items and parts behind the cut are left out.
 */
export function cutAnswer(answer: JsonObject, characters: number): JsonObject {
  if (Array.isArray(answer.choices)) {
    let left = characters;
    const choices = answer.choices.filter(isJsonObject).map((choice) => {
      const spoken = spokenBy(choice);
      const said = cutSpoken(spoken, left);
      left = said.left;
      const { name: field, text } = besideIn(choice);
      const isBeside = text !== "" && textOfChoice({ delta: spoken }) === "";
      const kept = isBeside ? cut(text, left, structure) : { value: null, left };
      left = kept.left;
      const beside = isBeside ? { [field]: kept.value } : {};
      const name = choice.delta === undefined ? "message" : "delta";
      const finish = name === "message" ? { finish_reason: "length" } : {};
      return { ...choice, ...beside, [name]: said.value, ...finish };
    });
    return { ...answer, choices };
  }
  if (Array.isArray(answer.output)) {
    const isCompaction = answer.object === compacted;
    const { value } = cutItems(answer.output, characters, isCompaction);
    if (isCompaction) return { ...answer, output: value };
    return { ...answer, ...endedEarly, output: value };
  }
  if (isMessage(answer)) {
    const { value } = cut(answer.content ?? null, characters, structure);
    return { ...answer, content: value, stop_reason: "max_tokens" };
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
  for (const name in answer) {
    if (eventStructure.has(name)) continue;
    const said = cutField(name, answer[name] as JsonValue, left, structure);
    cutFields[name] = said.value;
    left = said.left;
  }
  return { ...answer, ...cutFields };
}

const endedEarly = {
  status: "incomplete",
  incomplete_details: { reason: "max_output_tokens" },
} as const;

function cutItems(items: readonly JsonValue[], characters: number, isCompaction: boolean): Cut {
  const value: JsonValue[] = [];
  let left = characters;
  for (const item of items) {
    if (left <= 0) break;
    const isKept = isCompaction && isCallers(item);
    const said = isKept ? { value: item, left } : cutItem(item, left);
    value.push(said.value);
    left = said.left;
  }
  return { value, left };
}

function cutItem(item: JsonValue, characters: number): Cut {
  const said = cut(item, characters, itemStructure);
  if (said.left > 0 || !isJsonObject(said.value) || said.value.status === undefined) return said;
  return { ...said, value: { ...said.value, status: "incomplete" } };
}

function spokenBy({ delta, message }: JsonObject): JsonObject {
  if (isJsonObject(delta)) return delta;
  return isJsonObject(message) ? message : {};
}

interface Cut {
  value: JsonValue;
  /** Characters that may still follow. */
  left: number;
}

/** Like {@link cut}, for the text that {@link textOfChoice} reads. */
function cutSpoken(spoken: JsonObject, characters: number): Cut {
  const value: JsonObject = {};
  const thoughts = new Map<string, number>();
  let left = characters;
  for (const [name, field] of Object.entries(spoken)) {
    if (structure.has(name)) {
      value[name] = field;
      continue;
    }
    const text = isThought(name) ? textIn(field, structure) : "";
    const before = text === "" ? undefined : thoughts.get(text);
    if (before !== undefined) {
      value[name] = cut(field, before, structure).value;
      continue;
    }
    if (text !== "") thoughts.set(text, left);
    const part = cutField(name, field, left, structure);
    value[name] = part.value;
    left = part.left;
  }
  return { value, left };
}

/** Like {@link cut}, for the text that {@link textOfField} reads. */
function cutField(
  name: string,
  value: JsonValue,
  characters: number,
  without: ReadonlySet<string>,
): Cut {
  if (name === "audio") {
    if (!isJsonObject(value) || value.transcript === undefined) return { value, left: characters };
    const { value: transcript, left } = cut(value.transcript, characters, without);
    return { value: { ...value, transcript }, left };
  }
  if (name !== "arguments" || !isJsonObject(value)) return cut(value, characters, without);
  const json = JSON.stringify(value);
  if (json.length <= characters) return { value, left: characters - json.length };
  return cut(json, characters, without);
}

/** A value with at most this many characters of text in it. */
function cut(value: JsonValue, characters: number, without: ReadonlySet<string>): Cut {
  if (typeof value === "string") {
    const kept = value.length <= characters ? value : wholeCharacters(value, characters);
    return { value: kept, left: characters - kept.length };
  }
  let left = characters;
  if (Array.isArray(value)) {
    const kept: JsonValue[] = [];
    for (const item of value) {
      if (left <= 0) break;
      const part = cut(item, left, without);
      kept.push(part.value);
      left = part.left;
    }
    return { value: kept, left };
  }
  if (!isJsonObject(value)) return { value, left };
  const kept: JsonObject = {};
  for (const [name, field] of Object.entries(value)) {
    const isText = !isTextless(value) && !without.has(name);
    const part = isText ? cutField(name, field, left, without) : { value: field, left };
    kept[name] = part.value;
    left = part.left;
  }
  return { value: kept, left };
}

/** The first characters of a text, without half of a surrogate pair. */
function wholeCharacters(text: string, characters: number): string {
  const end = Math.max(0, characters);
  const code = text.charCodeAt(end);
  return text.slice(0, code >= 0xdc00 && code <= 0xdfff ? Math.max(0, end - 1) : end);
}
