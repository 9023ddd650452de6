// Reads from a request what the text model understands: who said what, and which tools there are.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { imageTokens, type Look, lookAt } from "./look.ts";
import { unseal } from "./seal.ts";

/** The parts of a request that the builtin model understands. */
export interface Conversation {
  /** The caller's and the operator's instructions, system messages too. They decide the language, and are never repeated. */
  instructions: string;
  /** The user's words, turn by turn. */
  said: string[];
  /** Images of the user's last turn. */
  looks: Look[];
  /** Results of calls that came after everything else. */
  results: { name: string; output: string }[];
  /** The content of earlier compactions, oldest first. */
  recalled: string[];
  /** Turns of the user that compactions replace. */
  recalledTurns: number;
  /** Everything that counts as input, for its tokens. */
  text: string;
  /** Tokens of the images. */
  imageTokens: number;
  /** Items, each of which costs a few tokens of framing. */
  items: number;
}

/** Topics that one conversation recalls. Those of a hundred compactions would fill the answer. */
const maxRecalled = 8;

/** Characters of a turn that are used for the answer. All of it counts as input. */
const heardChars = 4000;
/** The last results of calls, which the answer mentions. */
const maxResults = 10;

/** The used part of a user's turn, by default the last. "" where there is none. */
export function heard(talk: Conversation, at = -1): string {
  return (talk.said.at(at) ?? "").slice(0, heardChars);
}

/** Reads a request in the Responses format. */
export function readConversation(body: JsonObject): Conversation {
  const read: Conversation = {
    instructions: "",
    said: [],
    looks: [],
    results: [],
    recalled: [],
    recalledTurns: 0,
    text: "",
    imageTokens: 0,
    items: 0,
  };
  if (typeof body.instructions === "string") {
    read.instructions = body.instructions;
    read.text = body.instructions;
  }
  const { input } = body;
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const calls = new Map<string, string>();
  for (const item of Array.isArray(items) ? items : []) {
    if (isJsonObject(item)) readItem(read, item, calls);
  }
  for (const tool of Array.isArray(body.tools) ? body.tools : []) {
    read.items++;
    read.text += `\n${JSON.stringify(tool)}`;
  }
  return read;
}

function readItem(read: Conversation, item: JsonObject, calls: Map<string, string>): void {
  read.items++;
  switch (item.type ?? "message") {
    case "message":
      readMessage(read, item);
      break;
    case "function_call":
    case "custom_tool_call":
      calls.set(`${item.call_id}`, `${item.name}`);
      read.text += `\n${item.name} ${item.arguments ?? item.input}`;
      break;
    case "function_call_output":
    case "custom_tool_call_output": {
      const output = plainText(read, item.output);
      read.results.push({ name: calls.get(`${item.call_id}`) ?? "tool", output });
      read.results = read.results.slice(-maxResults);
      read.text += `\n${output}`;
      break;
    }
    case "compaction":
      recall(read, item);
      break;
  }
}

function readMessage(read: Conversation, { role, content }: JsonObject): void {
  if (role === "user") read.looks = [];
  const text = plainText(read, content);
  read.text += `\n${text}`;
  if (role === "user") {
    read.said.push(text);
    // An earlier answer has mentioned the calls before this turn.
    read.results = [];
  } else if (role === "system" || role === "developer") {
    read.instructions += `\n${text}`;
  }
}

/** The text of a content. Its images are read on the way. */
function plainText(read: Conversation, content: JsonValue | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts: string[] = [];
  for (const part of content.filter(isJsonObject)) {
    if (typeof part.text === "string") texts.push(part.text);
    else if (typeof part.refusal === "string") texts.push(part.refusal);
    else if (part.type === "input_image" && typeof part.image_url === "string") {
      const look = lookAt(part.image_url);
      read.looks.push(look);
      read.imageTokens += imageTokens(look, part.detail);
    }
  }
  return texts.join("\n");
}

function recall(read: Conversation, item: JsonObject): void {
  const state = typeof item.encrypted_content === "string" ? item.encrypted_content : "";
  // Another model's state cannot be used, and is no fault of the caller.
  const note = unseal(state) ?? {};
  const topics = Array.isArray(note.topics) ? note.topics : [];
  const texts = topics.filter((topic) => typeof topic === "string");
  read.recalled = [...read.recalled, ...texts].slice(-maxRecalled);
  if (typeof note.turns === "number") read.recalledTurns += note.turns;
  read.text += `\n${texts.join("\n")}`;
}
