// The most tokens that an input can have, cheap enough for every request. The hold needs it, and a request that cannot fit into
// its model is refused by it.

import type { Awaitable } from "#kit/base/awaitable.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { mostCharactersPerToken } from "../base/limits.ts";
import type { CheckedBody, InlinePart } from "../request/checked.ts";
import type { TakenMedia } from "../request/media.ts";
import { bytesPerToken, CountError, type TokenCounter } from "./count.ts";
import { fileTokens } from "./files.ts";
import type { Tokens } from "./most.ts";
import { estimatedImageTokens, leastImageTokens, mostImageTokens } from "./patches.ts";

/**
 * The most input tokens of a request, cheap enough for every request: the bytes of its text, without another look at the text. The walk
 * that checks the parsed body adds them up.
 *
 * The reason why it is a bound: the tokenizers of language models work on UTF-8 bytes and merge them. A token covers at least one byte,
 * so a text has at most as many tokens as bytes. The sum has all strings and names of the body that are sent, and an allowance for the
 * punctuation that a chat template makes of JSON. A template's own additions (roles, turn markers, the preamble for tools) are covered
 * by a fixed number for each item and one for the request. The name of the tool that some templates write before each result counts
 * with each.
 *
 * Images count in 32-pixel patches at full detail, at least as many as the model may make of the smallest. Where the catalog says so,
 * they count in tiles. Audio counts by its seconds (tokens/files.ts). The base64 of both does not count. Only the upstream knows the
 * content of a PDF, and the additions of a tool that it runs itself. With either, and wherever the sum is larger, the bound is the
 * model's maximum. Reported usage above the bound is charged up to the hold.
 */
export function inputBoundOf(
  checked: CheckedBody,
  taken: TakenMedia,
  weight: number,
  developerPrompt: string,
  spec: ChatSpec,
): number {
  const most = Number(spec.maxInputTokens);
  if (checked.hosted) return most;
  const { items, toolTokens, nameBytes } = checked;
  const text = weight - taken.base64Bytes + Buffer.byteLength(developerPrompt);
  const overhead = requestTokens + itemTokens * items + toolTokens + nameBytes;
  return Math.min(text + overhead + mediaTokensOf(taken, spec).held, most);
}

/** Tokens of the images and files of a request. */
export interface MediaTokens {
  /** Used where the upstream reports none. */
  estimate: number;
  /** Used for a hold. */
  held: number;
  /** Used for a caller that leaves. */
  most: number;
  /** Tokens that count against the context window. Models scale images to fit. */
  least: number;
}

const noMediaTokens: Readonly<MediaTokens> = { estimate: 0, held: 0, most: 0, least: 0 };

/** Tokens of the images and files of a request, in the way in which their model counts them. */
export function mediaTokensOf(taken: TakenMedia, spec: ChatSpec): MediaTokens {
  if (taken.sizes.length + taken.files.length === 0) return noMediaTokens;
  const count = {
    atLeast: Number(spec.imageTokensAtLeast),
    tile: Number(spec.imageTokensPerTile),
    base: Number(spec.imageTokensBase),
  };
  const sum: MediaTokens = { estimate: 0, held: 0, most: 0, least: 0 };
  for (const size of taken.sizes) {
    const most = mostImageTokens(size, count);
    sum.estimate += estimatedImageTokens(size, count);
    sum.held += most;
    sum.most += most;
    sum.least += leastImageTokens(size);
  }
  for (const file of taken.files) {
    const { estimate, held, most, least } = fileTokens(file, spec);
    sum.estimate += estimate;
    sum.held += held;
    sum.most += most;
    sum.least += least;
  }
  return sum;
}

/** Tokens that a template may put around one message, item or tool. */
const itemTokens = 16;
/** Tokens that a template may put in front of everything. */
const requestTokens = 256;
/** Tokens of one item beyond its text, for an estimate. */
const estimatedItemTokens = 4;

/** An estimate of the input tokens by a count, where the upstream reports none. */
export async function estimateInput(
  { body, media, items, mediaTokens, toolTokens }: EstimatedInput,
  counter: TokenCounter,
): Promise<Tokens> {
  const { texts, marks, opaqueBytes } = textsOf(body, media.parts);
  const { tokens, most } = await counter.measure(texts);
  const rest = marks + opaqueTokens(opaqueBytes) + items * estimatedItemTokens + toolTokens;
  return { tokens: tokens + rest + mediaTokens.estimate, most: most + rest + mediaTokens.most };
}

/** The parts of a request from which its input is estimated. */
export interface EstimatedInput {
  body: JsonObject;
  media: TakenMedia;
  /** As in {@link CheckedBody}. */
  items: number;
  toolTokens: number;
  mediaTokens: MediaTokens;
}

/** Input tokens by a guess that takes no time. They are charged if the process dies before it has counted. */
export function guessInput(
  weight: number,
  { base64Bytes }: TakenMedia,
  developerPrompt: string,
  beside: number,
): number {
  const bytes = weight - base64Bytes + Buffer.byteLength(developerPrompt);
  return Math.ceil(bytes / bytesPerToken) + beside;
}

/** The window that input and output share. */
export interface ContextRoom {
  /** Tokens for the input. */
  input: number;
}

/**
 * Room for the input in the model's window (`maxInputTokens`), without the safety margin and without the room for the output. That is
 * `max_output_tokens`, or the model's maximum where that is omitted. An omitted one, and one that is a wish, takes at most half the window. Otherwise a model
 * whose maximum is as large as its window would take no input at all.
 */
export function contextRoom(
  { maxOutputTokens, mayFallTo }: Pick<CheckedBody, "maxOutputTokens" | "mayFallTo">,
  spec: ChatSpec,
): ContextRoom {
  const window = Number(spec.maxInputTokens);
  const isKept = maxOutputTokens !== undefined && mayFallTo === undefined;
  const most = maxOutputTokens ?? Number(spec.maxOutputTokens);
  const reserved = isKept ? maxOutputTokens : Math.min(most, Math.floor(window / 2));
  return { input: window - Number(spec.safetyMarginTokens) - reserved };
}

/**
 * Refuses input that does not fit with CONTEXT_LENGTH_EXCEEDED. `byteBound` is the bound of the whole input, which is the whole window
 * where a PDF is in it. Even then the text alone may fit by its bytes. Text is not counted where it fits by its bytes, or cannot fit at
 * all. Other text is counted in a turn of its account, because bytes are about four times the tokens. Text that cannot be counted
 * passes. The upstream refuses it where it does not fit.
 */
export function checkContext(
  checked: CheckedBody,
  taken: TakenMedia,
  byteBound: number,
  spec: ChatSpec,
  counting: Counting,
): Awaitable<void> {
  const room = contextRoom(checked, spec).input;
  return byteBound <= room ? undefined : checkByCount(checked, taken, room, spec, counting);
}

interface Counting {
  counterOf: () => TokenCounter;
  turn: () => Promise<Disposable>;
}

async function checkByCount(
  checked: CheckedBody,
  taken: TakenMedia,
  room: number,
  spec: ChatSpec,
  counting: Counting,
): Promise<void> {
  const { texts, opaqueBytes } = textsOf(checked.body, taken.parts);
  const rest = mediaTokensOf(taken, spec).least + opaqueTokens(opaqueBytes);
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (rest + bytes <= room) return;
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  if (rest < room && characters <= (room - rest) * mostCharactersPerToken) {
    using _turn = await counting.turn();
    if (rest + (await counted(texts, room - rest, counting.counterOf())) <= room) return;
  }
  // Clients compact by the difference, which is at least one.
  const guessed = Math.max(room + 1, rest + Math.ceil(bytes / bytesPerToken));
  refuse(ErrorReason.CONTEXT_LENGTH_EXCEEDED, {
    param: checked.inputParam,
    metadata: {
      max_input_tokens: String(spec.maxInputTokens),
      input_tokens: String(guessed),
      input_room: String(Math.max(0, room)),
    },
  });
}

async function counted(
  texts: readonly string[],
  limit: number,
  counter: TokenCounter,
): Promise<number> {
  try {
    return await counter.count(texts, limit);
  } catch (error) {
    if (error instanceof CountError) return 0;
    throw error;
  }
}

/** Tokens of encrypted state, which cannot be counted. It is base64 of its content, three bytes in four digits. */
function opaqueTokens(bytes: number): number {
  return Math.floor((bytes * 3) / 4 / bytesPerToken);
}

/** The text of a body that is counted, and its other parts. */
interface Texts {
  texts: string[];
  /** Tokens of the punctuation around JSON that a model reads unchanged. */
  marks: number;
  /** Bytes of all encrypted state together. */
  opaqueBytes: number;
}

/**
 * All text of a body that the upstream gets: every string, name and number. Left out are the bytes of verified images and files, each
 * in its own place, and settings of one value. Names that a chat template turns into a marker are left out too, because the estimate
 * for an item covers them.
 */
export function textsOf(body: JsonObject, inline: readonly InlinePart[]): Texts {
  const found: Texts = { texts: [], marks: 0, opaqueBytes: 0 };
  const bytesOf = new Map(inline.map(({ holder, field }) => [holder, field]));
  /** `depth`: 0 for an item, 1 for its parts. Values at a greater depth are the caller's own data, like a tool's schema. */
  const visit = (value: JsonValue, depth: number) => {
    if (typeof value === "string") found.texts.push(value);
    else if (Array.isArray(value)) {
      for (const item of value) visit(item, depth);
      if (depth > partDepth) found.marks += value.length;
    } else if (isJsonObject(value)) visitObject(value, depth);
    else if (depth > partDepth) found.texts.push(String(value));
  };
  const visitObject = (object: JsonObject, depth: number) => {
    const bytes = bytesOf.get(object);
    for (const name in object) {
      const value = object[name] as JsonValue;
      if (name === "cache_control" && depth <= partDepth) continue;
      const isMarker = depth <= partDepth && structural.has(name);
      if (!isMarker) found.texts.push(name);
      if (depth > partDepth) found.marks++;
      if (typeof value === "string" && isSealed(object, name, depth)) {
        found.opaqueBytes += value.length;
      } else if (name !== bytes) visit(value, depth + 1);
    }
  };
  for (const name in body) {
    const value = body[name] as JsonValue;
    if (settings.has(name)) continue;
    if (typeof value === "string") found.texts.push(value);
    else if (Array.isArray(value) && conversations.has(name)) visit(value, 0);
    else if (typeof value === "object" && value !== null) visit(value, partDepth + 1);
  }
  return found;
}

/** Is it state that only the upstream reads? In `extra_content` a signature is two levels below its call. */
function isSealed({ type }: JsonObject, name: string, depth: number): boolean {
  if (name === "thought_signature") return depth <= partDepth + 2;
  if (depth > partDepth) return false;
  const isRouters = name === "data" && type === "reasoning.encrypted";
  return name === "encrypted_content" || name === "signature" || isRouters;
}

/** Depth of the parts of an item, which items hold in arrays. */
const partDepth = 1;
/** Fields of a request that are arrays of items. */
const conversations = new Set(["input", "messages", "system"]);
/** Fields of a request whose text no model reads. Some are objects: options of Messages. */
const settings = new Set([
  ...["encoding_format", "model", "prompt_cache_key"],
  ...["cache_control", "context_management", "thinking"],
]);
/** Names that a chat template turns into a marker. The estimate for an item covers them. */
const structural = new Set([
  "type",
  "role",
  "content",
  "text",
  "id",
  "image_url",
  "input_audio",
  "file",
  "file_data",
  "filename",
  "detail",
  "status",
]);
