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
 * Most input tokens of a request, cheap enough for every one of them: the bytes of its text, without looking at the text
 * again (the walk that checks the parsed body adds them up).
 *
 * Why it is a bound. The tokenizers of language models work on UTF-8 bytes and merge: a token covers at least one byte,
 * so a text has at most as many tokens as bytes. The sum takes in every string and every name of the body that goes up,
 * plus an allowance for the punctuation that a chat template makes of JSON; what a template adds on its own (roles,
 * turn markers, the preamble for tools) is covered by a fixed number for each item and one for the request; the name of the tool
 * that some write before each result counts with each. Images count
 * in 32-pixel patches at full detail, at least as many as the model may make of the
 * smallest, or in tiles where its catalog says so, and sounds by their seconds (tokens/files.ts), their base64 not at all.
 * What is in a PDF upstream alone knows, and what a tool adds that upstream runs itself: with either, and wherever the sum is
 * above it, the bound is what the model takes at most. Reported usage above the bound
 * is charged up to the hold.
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
  const text = weight - taken.base64Bytes + Buffer.byteLength(developerPrompt);
  const sum = text + overheadOf(checked) + mediaTokensOf(taken, spec).held;
  return Math.min(sum, most);
}

/** Tokens of the images and files of a request. */
export interface MediaTokens {
  /** When upstream reports none. */
  estimate: number;
  /** For a hold. */
  held: number;
  /** For a caller that leaves. */
  most: number;
  /** That count against the context window: models scale images to fit. */
  least: number;
}

/** What the images and files of a request come to, by how their model counts them. */
export function mediaTokensOf(taken: TakenMedia, spec: ChatSpec): MediaTokens {
  const count = {
    atLeast: Number(spec.imageTokensAtLeast),
    tile: Number(spec.imageTokensPerTile),
    base: Number(spec.imageTokensBase),
  };
  const images = sumOf(taken, (size) => mostImageTokens(size, count));
  const sum = {
    estimate: sumOf(taken, (size) => estimatedImageTokens(size, count)),
    held: images,
    most: images,
    least: sumOf(taken, leastImageTokens),
  };
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
/** Tokens that one item has beyond its text, when they are estimated. */
const estimatedItemTokens = 4;

function overheadOf(checked: CheckedBody): number {
  const { items, toolTokens, nameBytes } = checked;
  return requestTokens + itemTokens * items + toolTokens + nameBytes;
}

function sumOf(taken: TakenMedia, patches: (size: TakenMedia["sizes"][number]) => number): number {
  return taken.sizes.reduce((sum, size) => sum + patches(size), 0);
}

/** Input tokens by count, where upstream reports none: an estimate. */
export async function estimateInput(
  { body, media, items, mediaTokens, toolTokens }: EstimatedInput,
  counter: TokenCounter,
): Promise<Tokens> {
  const { texts, marks, opaqueBytes } = textsOf(body, media.parts);
  const { tokens, most } = await counter.measure(texts);
  const rest = marks + opaqueTokens(opaqueBytes) + items * estimatedItemTokens + toolTokens;
  return { tokens: tokens + rest + mediaTokens.estimate, most: most + rest + mediaTokens.most };
}

/** What the input of a request is estimated from. */
export interface EstimatedInput {
  body: JsonObject;
  media: TakenMedia;
  /** As in {@link CheckedBody}. */
  items: number;
  toolTokens: number;
  mediaTokens: MediaTokens;
}

/** Input tokens by a guess that costs nothing: what is charged if the process dies before it has counted. */
export function guessInput(
  weight: number,
  { base64Bytes }: TakenMedia,
  developerPrompt: string,
  beside: number,
): number {
  const bytes = weight - base64Bytes + Buffer.byteLength(developerPrompt);
  return Math.ceil(bytes / bytesPerToken) + beside;
}

/** The window that input and reserved output share. */
export interface ContextRoom {
  /** Tokens for the input. */
  input: number;
}

/**
 * Room for the input in the model's window (`maxInputTokens`): without the safety margin, and without the output that is
 * reserved, which is `max_output_tokens`, or the model's maximum where that is omitted. An omitted one takes no more than
 * half the window, or a model whose maximum is as large as its window would take no input at all.
 */
export function contextRoom(maxOutputTokens: number | undefined, spec: ChatSpec): ContextRoom {
  const window = Number(spec.maxInputTokens);
  const reserved =
    maxOutputTokens ?? Math.min(Number(spec.maxOutputTokens), Math.floor(window / 2));
  return { input: window - Number(spec.safetyMarginTokens) - reserved };
}

/**
 * Refuses with CONTEXT_LENGTH_EXCEEDED what does not fit. `byteBound` is the bound of all of the input, which is the whole window where
 * a PDF is in it; the text alone may fit by its bytes even then. Text that fits by its bytes, and text that fits by no measure, is not
 * counted. The rest is counted in a turn of its account, because bytes are about four times the tokens. What cannot be counted
 * passes: upstream refuses it where it does not fit.
 */
export async function checkContext(
  checked: CheckedBody,
  taken: TakenMedia,
  byteBound: number,
  spec: ChatSpec,
  counting: { counter: TokenCounter; turn: () => Promise<Disposable> },
): Promise<void> {
  const room = contextRoom(checked.maxOutputTokens, spec).input;
  if (byteBound <= room) return;
  const { texts, opaqueBytes } = textsOf(checked.body, taken.parts);
  const rest = mediaTokensOf(taken, spec).least + opaqueTokens(opaqueBytes);
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (rest + bytes <= room) return;
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  if (rest < room && characters <= (room - rest) * mostCharactersPerToken) {
    using _turn = await counting.turn();
    if (rest + (await counted(texts, room - rest, counting.counter)) <= room) return;
  }
  refuse(ErrorReason.CONTEXT_LENGTH_EXCEEDED, {
    param: checked.inputParam,
    metadata: { max_input_tokens: String(spec.maxInputTokens) },
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

/** Encrypted state is base64 of what it hides, three bytes in four digits, and its tokens cannot be counted. */
function opaqueTokens(bytes: number): number {
  return Math.floor((bytes * 3) / 4 / bytesPerToken);
}

/** What of a body is counted as text, and what is not text. */
interface Texts {
  texts: string[];
  /** Punctuation around JSON that a model reads as it is, in tokens. */
  marks: number;
  /** How long encrypted state is, in all. */
  opaqueBytes: number;
}

/**
 * Everything of a body that upstream is sent, as text: every string, name and number. Left out are the bytes of images and files
 * that were verified, each in its own place, settings of one value, and names that a chat template turns into a marker
 * of the item, which the estimate for an item covers.
 */
export function textsOf(body: JsonObject, inline: readonly InlinePart[]): Texts {
  const found: Texts = { texts: [], marks: 0, opaqueBytes: 0 };
  const bytesOf = new Map(inline.map(({ holder, field }) => [holder, field]));
  /** `depth`: of an item 0, of its parts 1; what lies deeper is the caller's own data, like a tool's schema. */
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
    if (typeof value === "string" && !settings.has(name)) found.texts.push(value);
    else if (Array.isArray(value) && conversations.has(name)) visit(value, 0);
    else if (typeof value === "object" && value !== null) visit(value, partDepth + 1);
  }
  return found;
}

/** Does upstream alone read it? In `extra_content` a signature stands two levels below its call. */
function isSealed({ type }: JsonObject, name: string, depth: number): boolean {
  if (name === "thought_signature") return depth <= partDepth + 2;
  if (depth > partDepth) return false;
  const isRouters = name === "data" && type === "reasoning.encrypted";
  return name === "encrypted_content" || name === "signature" || isRouters;
}

/** Of the parts of an item, which items hold in arrays. */
const partDepth = 1;
/** Fields of a request that are arrays of items. */
const conversations = new Set(["input", "messages"]);
/** Fields of a request whose text no model reads. */
const settings = new Set(["encoding_format", "model"]);
/** Names that a chat template turns into a marker, which the estimate for an item covers. */
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
