import type { JsonObject } from "#kit/base/json.ts";
import type { Model, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Sound, TextOperation } from "../../upstreams/text/port.ts";
import type { TextPrice, TokenBounds } from "../metering/pricing.ts";
import type { MediaTokens } from "../tokens/input-bound.ts";
import { noMedia, type TakenMedia } from "./media.ts";
import type { AnswerForm } from "./parse.ts";

/** A request that is valid and priced: nothing stands between it and its hold. */
export interface PreparedRequest {
  operation: TextOperation;
  form: AnswerForm;
  model: Model;
  catalogVersion: string;
  /** In the order of trying; a single one where opaque state binds the request to it. */
  upstreams: readonly Upstream[];
  /** As it goes up; `model` is still the public id. */
  body: JsonObject;
  /** Properties of the request as the caller sent them. */
  asked: JsonObject;
  /** Properties within it that do not go up; absent: none. */
  leftOut?: readonly string[];
  /** The model's `passParameters`. */
  passParameters: readonly string[];
  /** That part of the body's instructions, or of its first message; "" for none. */
  developerPrompt: string;
  callerInstructions: string | null;
  /** The bound of the output that the caller chose; undefined: none. */
  maxOutputTokens: number | undefined;
  price: TextPrice;
  /** What is held for: of output the caller's bound, or, where upstream cannot be told one, all that the model may make. */
  bounds: TokenBounds;
  /** USD micros. */
  holdAmount: bigint;
  /**
   * USD micros, from which on a smaller hold will do: the bound of the output then falls to what it pays for, and upstream
   * is told. Undefined where the caller chose what is held for.
   */
  leastHold: bigint | undefined;
  /** Would a smaller `max_output_tokens` make the hold smaller? */
  heldByBound: boolean;
  /** For estimates. */
  media: TakenMedia;
  mediaTokens: MediaTokens;
  items: number;
  /** Tokens of input that stand in the body as such, as numbers; absent: none. */
  tokensAsSuch?: number;
  /** What is transcribed; absent: nothing. */
  sound?: Sound;
  toolTokens: number;
  /** It names a tool that upstream carries out, whose results become input. */
  hosted: boolean;
  guessedInput: number;
}

/** Of a request that has no conversation: no instructions, no media, no items or tools, and no output that is paid for. */
export const noConversation = {
  passParameters: [],
  developerPrompt: "",
  callerInstructions: null,
  maxOutputTokens: undefined,
  leastHold: undefined,
  heldByBound: false,
  media: noMedia,
  mediaTokens: { estimate: 0, held: 0, most: 0, least: 0 },
  items: 0,
  toolTokens: 0,
  hosted: false,
} satisfies Partial<PreparedRequest>;
