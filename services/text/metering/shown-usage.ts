import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { dataFrame, typedFrame } from "../../upstreams/text/frame.ts";
import { messageUsage } from "../../upstreams/text/messages/usage.ts";
import { secondsOfUnits, type TextOperation } from "../../upstreams/text/port.ts";
import { dataOf } from "../base/frames.ts";
import type { ChargedTokens } from "./pricing.ts";
import { findUsage, isSpace } from "./usage-position.ts";

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
