// Writes the cost, and the tokens that genmesh counted, into answers. Callers then see the numbers by which they pay.

import { type Awaitable, orElse } from "#kit/base/awaitable.ts";
import { inTurns, joinInTurns } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { dataFrame, typedFrame } from "../../upstreams/text/frame.ts";
import { messageUsage } from "../../upstreams/text/messages/usage.ts";
import {
  bytesOfBody,
  type JsonAnswer,
  secondsOfUnits,
  type TextOperation,
} from "../../upstreams/text/port.ts";
import { dataOf } from "../base/frames.ts";
import type { LargeAnswers } from "../large/index.ts";
import type { Metered } from "../paid/paid-request.ts";
import type { ChargedTokens } from "./pricing.ts";

/** Tokens that genmesh counted, as the `usage` of an answer. `estimated` is a field of genmesh's own. */
export function estimatedUsage(operation: TextOperation, tokens: ChargedTokens): JsonObject {
  const { input, cachedInput, output } = tokens;
  const cached = { cached_tokens: cachedInput };
  const reasoning = { reasoning_tokens: 0 };
  const total = { total_tokens: input + output, estimated: true };
  if (operation === "transcriptions") {
    return { type: "duration", seconds: secondsOfUnits(input), estimated: true };
  }
  if (operation === "embeddings") return { prompt_tokens: input, ...total };
  if (operation === "messages") {
    const { cacheWrite: written = 0 } = tokens;
    const usage = messageUsage({ input, cached: cachedInput, written, output, thinking: 0 });
    return { ...usage, estimated: true };
  }
  if (operation === "chat") {
    return {
      prompt_tokens: input,
      completion_tokens: output,
      prompt_tokens_details: cached,
      completion_tokens_details: reasoning,
      ...total,
    };
  }
  return {
    input_tokens: input,
    output_tokens: output,
    input_tokens_details: cached,
    output_tokens_details: reasoning,
    ...total,
  };
}

/** The facts about its charge that an answer shows. */
export interface ShownCharge {
  /** USD micros. Undefined where another process decided them. */
  cost?: bigint | undefined;
  /** Tokens that genmesh counted. Undefined: the upstream's own numbers stay. */
  estimate?: ChargedTokens | undefined;
}

/** The cost of an answer: in dollars as OpenRouter shows them, and as the integer, which is exact. */
function costFields(cost: bigint) {
  return { cost: Number(cost) / 1_000_000, costUsdMicros: Number(cost) };
}

/**
 * The pieces of JSON, or of a frame with JSON, whose usage shows the cost. The JSON stays unchanged where it has no usage. It yields
 * now and then, because an answer may have many megabytes.
 */
export function* piecesWithCost(bytes: Uint8Array, cost: bigint): Generator<void, Uint8Array[]> {
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const inside = yield* findUsage(json);
  if (inside === undefined) return [bytes];
  let next = inside;
  while (isSpace(json[next])) next++;
  const isEmpty = json[next] === "}".charCodeAt(0);
  const figures = `${JSON.stringify(costFields(cost)).slice(1, -1)}${isEmpty ? "" : ","}`;
  return [json.subarray(0, inside), Buffer.from(figures), json.subarray(inside)];
}

/** The same at once, for bytes in a thread or for short ones. */
function withCost(bytes: Uint8Array, cost: bigint): Uint8Array {
  const work = piecesWithCost(bytes, cost);
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value.length === 1 ? bytes : Buffer.concat(step.value);
}

/** A JSON answer that shows its cost and the tokens that genmesh counted. Without `estimate` the upstream's own numbers stay. */
export function answerWithUsage(
  answer: JsonObject,
  operation: TextOperation,
  { cost, estimate }: ShownCharge,
): JsonObject {
  const usage = estimate ? estimatedUsage(operation, estimate) : answer.usage;
  if (!isJsonObject(usage)) return answer;
  return { ...answer, usage: { ...(cost === undefined ? {} : costFields(cost)), ...usage } };
}

/** The same for bytes. Where nothing was counted they are not parsed. */
export function bodyWithUsage(
  body: Uint8Array,
  operation: TextOperation,
  { cost, estimate }: ShownCharge,
): Uint8Array {
  if (!estimate) return cost === undefined ? body : withCost(body, cost);
  const answer: unknown = JSON.parse(Buffer.from(body).toString());
  if (!isJsonObject(answer)) return body;
  return Buffer.from(JSON.stringify(answerWithUsage(answer, operation, { cost, estimate })));
}

/**
 * The last frames of a stream with the cost and the tokens that genmesh counted: see {@link lastFramesWithEstimate}. `cost` undefined:
 * another process decided it.
 */
export function lastFramesWithUsage(
  frame: Uint8Array,
  operation: TextOperation,
  { cost, estimate }: ShownCharge,
  inChunk: boolean,
): Uint8Array[] {
  const frames = lastFramesWithEstimate(operation, frame, estimate, inChunk);
  return cost === undefined ? frames : frames.map((one) => withCost(one, cost));
}

/**
 * The last frames of a stream with the tokens that genmesh counted, in the response object. With `inChunk` they are in the usage chunk
 * of a chat stream, which is added where the upstream sent none. The frame stays unchanged where `estimate` is undefined.
 */
function lastFramesWithEstimate(
  operation: TextOperation,
  frame: Uint8Array,
  estimate: ChargedTokens | undefined,
  inChunk: boolean,
): Uint8Array[] {
  const event = estimate && dataOf(frame);
  if (!estimate || !event) return [frame];
  const usage = estimatedUsage(operation, estimate);
  if (operation === "messages") {
    return event.type === "message_delta" ? [typedFrame({ ...event, usage })] : [frame];
  }
  if (operation !== "chat") {
    const { type, response } = event;
    if (typeof type !== "string" || !isJsonObject(response)) return [frame];
    return [typedFrame({ ...event, response: { ...response, usage } })];
  }
  if (!inChunk || !Array.isArray(event.choices)) return [frame];
  const chunk = dataFrame({ ...event, choices: [], usage });
  return event.choices.length > 0 ? [frame, chunk] : [chunk];
}

/**
 * The bytes of a body with its cost and the tokens that genmesh counted. An object is written once, with both. Where no thread for
 * large answers is free, this process adds the cost to bytes bit by bit. The counted tokens need the thread.
 */
export function withShownCost(
  operation: TextOperation,
  body: JsonAnswer["body"],
  charge: ShownCharge,
  large: Pick<LargeAnswers, "run">,
  payer: Pick<Metered, "accountId">,
): Awaitable<Uint8Array> {
  if (body instanceof Uint8Array) return bytesWithCost(operation, body, charge, large, payer);
  return bytesOfBody(answerWithUsage(body, operation, charge));
}

function bytesWithCost(
  operation: TextOperation,
  body: Uint8Array,
  charge: ShownCharge,
  large: Pick<LargeAnswers, "run">,
  { accountId }: Pick<Metered, "accountId">,
): Awaitable<Uint8Array> {
  const working = () => large.run("withUsage", { accountId }, body, operation, charge);
  return orElse(working, (error) => {
    if (charge.estimate) throw error;
    return withCostInTurns(body, charge.cost);
  });
}

/** The last frames of a stream, in the same way. `inChunk`: see `lastFramesWithUsage`. */
export function lastFramesShown(
  operation: TextOperation,
  frame: Uint8Array,
  { cost, estimate, inChunk }: ShownCharge & { inChunk: boolean },
  large: Pick<LargeAnswers, "run">,
  { accountId }: Pick<Metered, "accountId">,
): Awaitable<Uint8Array[]> {
  const charge = { cost, estimate };
  const working = () => large.run("lastFrames", { accountId }, frame, operation, charge, inChunk);
  return orElse(working, async (error) => {
    if (estimate) throw error;
    return [await withCostInTurns(frame, cost)];
  });
}

async function withCostInTurns(json: Uint8Array, cost: bigint | undefined): Promise<Uint8Array> {
  if (cost === undefined) return json;
  const pieces = await inTurns(piecesWithCost(json, cost));
  return pieces.length === 1 ? json : joinInTurns(pieces);
}

/** Bytes that are searched before other work has its turn. They take a few ms. */
const bytesAtOnce = 256 * 1024;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [brace, braceEnd, bracket, bracketEnd] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Finds the `usage` of an answer, or of the `response` in an event: the place behind its opening brace. Undefined where there is none,
 * or where it is no object. A property of that name within a tool's schema or in generated text is ignored. Nothing is parsed, and it
 * yields now and then, so that an answer of many megabytes can be searched beside other work.
 */
export function* findUsage(json: Buffer): Generator<void, number | undefined> {
  let depth = 0;
  /** The depth of the object whose `usage` is wanted: 1, or 2 within `response`. */
  let wanted = 1;
  let mayBeName = false;
  let yieldAt = bytesAtOnce;
  for (let at = json.indexOf(brace); at >= 0 && at < json.length; at++) {
    if (at >= yieldAt) {
      yieldAt = at + bytesAtOnce;
      yield;
    }
    const byte = json[at];
    if (byte === quote) {
      const end = endOfText(json, at);
      if (end < 0) return undefined;
      if (mayBeName && depth === wanted) {
        const name = json.toString("latin1", at + 1, end);
        const value = name === "usage" || name === "response" ? valueAfter(json, end) : -1;
        if (json[value] === brace) {
          if (name === "usage") return value + 1;
          if (depth === 1) wanted = 2;
        }
      }
      mayBeName = false;
      at = end;
    } else if (byte === brace || byte === bracket) {
      depth++;
      mayBeName = byte === brace;
    } else if (byte === braceEnd || byte === bracketEnd) {
      depth--;
      if (depth < wanted) wanted = 1;
      if (depth === 0) return undefined;
    } else if (byte === comma) mayBeName = true;
  }
  return undefined;
}

/** The closing quote of a text that begins at `from`. -1 where there is none. */
function endOfText(json: Buffer, from: number): number {
  for (let end = json.indexOf(quote, from + 1); end >= 0; end = json.indexOf(quote, end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === backslash) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** The beginning of the value behind a name whose closing quote is at `end`. */
function valueAfter(json: Buffer, end: number): number {
  let at = end + 1;
  while (isSpace(json[at])) at++;
  if (json[at] !== colon) return -1;
  at++;
  while (isSpace(json[at])) at++;
  return at;
}

/** Is it white space of JSON? */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
