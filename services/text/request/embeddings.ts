// Prepares a request for embeddings, from its check to its price. It has no conversation, so `prepare.ts` hands it over whole.

import type { CatalogView } from "#common/agreements/catalog-client.ts";
import { optionalNumber, optionalString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonValue } from "#kit/base/json.ts";
import { growthOf } from "#kit/base/text-growth.ts";
import { type EmbeddingSpec, ModelKind } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { holdAmountOf, priceOfEmbedding } from "../metering/pricing.ts";
import { bytesPerToken } from "../tokens/count.ts";
import { capableUpstreams, findAllowed } from "./model.ts";
import type { ParsedRequest } from "./parse.ts";
import { noConversation, type PreparedRequest } from "./prepared.ts";

/** Fields of a body that are sent to the upstream. */
const passed: ReadonlySet<string> = new Set([
  "dimensions",
  "encoding_format",
  "input",
  "model",
  "user",
]);

/** Tokens that a model may put around one input, and the usual number: one before it and one behind it. */
const [mostAround, usualAround] = [16, 2];

/**
 * Validates and prices a request for embeddings. Refuses with the public code and the path of the wrong field. It has no output. Its
 * hold is for as many tokens as its texts have bytes, each at most the model's maximum for one input.
 */
export function prepareEmbeddings(
  { operation, form, body: asked }: ParsedRequest,
  admission: Admission | undefined,
  view: CatalogView,
): PreparedRequest {
  const model = findAllowed(asked, ModelKind.EMBEDDING, view, admission);
  if (model.spec.case !== "embedding") throw new TypeError("an embedding model without its limits");
  const spec = model.spec.value;
  const sizes = sizesOf(asked.input, spec);
  optionalNumber(asked, "dimensions", { integer: true, min: 1 });
  optionalString(asked, "encoding_format", { oneOf: ["float", "base64"] });
  optionalString(asked, "user");
  const most = Number(spec.maxInputTokens);
  const price = priceOfEmbedding(spec);
  const input = sumOf(sizes, ({ bytes, tokens }) => Math.min(bytes + tokens + mostAround, most));
  const bounds = { input, output: 0 };
  const tokensAsSuch = sumOf(sizes, ({ tokens }) => tokens + usualAround);
  const guessed = Math.ceil(sumOf(sizes, ({ bytes }) => bytes) / bytesPerToken) + tokensAsSuch;
  return {
    ...noConversation,
    operation,
    form,
    model,
    catalogVersion: view.snapshot.version,
    upstreams: capableUpstreams(operation, model, view),
    body: Object.fromEntries(Object.entries(asked).filter(([name]) => passed.has(name))),
    asked,
    price,
    bounds,
    holdAmount: holdAmountOf(price, bounds),
    tokensAsSuch,
    guessedInput: Math.min(guessed, input),
  };
}

/** The size of an input: a text in bytes, a list of tokens in tokens. */
interface InputSize {
  bytes: number;
  tokens: number;
}

function sumOf(sizes: readonly InputSize[], of: (size: InputSize) => number): number {
  return sizes.reduce((sum, size) => sum + of(size), 0);
}

function sizesOf(input: JsonValue | undefined, spec: EmbeddingSpec): InputSize[] {
  if (input === undefined || input === null) {
    return refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "input" });
  }
  if (!Array.isArray(input)) return [sizeOf(input, "input", spec)];
  if (input.length === 0) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "input" });
  if (typeof input[0] === "number") return [sizeOf(input, "input", spec)];
  if (input.length > spec.maxInputs) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "input",
      message: `The model takes at most ${spec.maxInputs} inputs at once.`,
    });
  }
  return input.map((one, index) => sizeOf(one, `input[${index}]`, spec));
}

/**
 * Bytes of a text in the form that tokenizers read. Some bring each character to its plain form first (NFKC, in the vocabularies of
 * SentencePiece). One character of three bytes may then become eighteen letters. A text that is above `most` already is not examined.
 */
function mostBytesOf(text: string, most: number): number {
  const bytes = Buffer.byteLength(text);
  return bytes === text.length || bytes >= most ? bytes : bytes + growthOf(text, "NFKC");
}

function sizeOf(input: JsonValue, param: string, { maxInputTokens }: EmbeddingSpec): InputSize {
  if (typeof input === "string") {
    if (input === "") refuse(ErrorReason.INVALID_VALUE, { param });
    return { bytes: mostBytesOf(input, Number(maxInputTokens)), tokens: 0 };
  }
  const isToken = (one: JsonValue) => Number.isSafeInteger(one) && (one as number) >= 0;
  if (!Array.isArray(input) || !input.every(isToken)) refuse(ErrorReason.INVALID_TYPE, { param });
  if (input.length === 0) refuse(ErrorReason.INVALID_VALUE, { param });
  if (input.length > maxInputTokens) {
    refuse(ErrorReason.CONTEXT_LENGTH_EXCEEDED, {
      param,
      metadata: { max_input_tokens: String(maxInputTokens) },
    });
  }
  return { bytes: 0, tokens: input.length };
}
