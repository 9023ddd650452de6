// The form of a request that is ready for its hold. Preparing makes it, and paying and sending read it.

import type { JsonObject } from "#kit/base/json.ts";
import type { Model, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Sound, TextOperation } from "../../upstreams/text/port.ts";
import type { HeldContent } from "../metering/price-list.ts";
import type { TextPrice, TokenBounds } from "../metering/pricing.ts";
import type { MediaTokens } from "../tokens/input-bound.ts";
import { noMedia, type TakenMedia } from "./media.ts";
import type { AnswerForm } from "./parse.ts";

/** A request that is valid and priced, and ready for its hold. */
export interface PreparedRequest {
  operation: TextOperation;
  form: AnswerForm;
  model: Model;
  catalogVersion: string;
  /** In the order of trying. There is only one where opaque state binds the request to it. */
  upstreams: readonly Upstream[];
  /** Has the model other upstreams that could answer, except for the opaque state? Absent: no. */
  isPinned?: boolean;
  /** The name of the conversation, by which it stays at one upstream. Absent: the request is alone, or its model shares none. */
  stick?: string | undefined;
  /** The body for the upstream. `model` is still the public id. */
  body: JsonObject;
  /** Properties of the request as the caller sent them. */
  asked: JsonObject;
  /** Nested properties that are not sent to the upstream. Absent: none. */
  leftOut?: readonly string[];
  /** Beta features that a client of Anthropic's asks for. Absent: none. */
  betas?: readonly string[] | undefined;
  /** The model's `passParameters`. */
  passParameters: readonly string[];
  /** The part of the body's instructions, or of its first message, that is the configured prompt. "" for none. */
  developerPrompt: string;
  callerInstructions: string | null;
  /** The bound of the output that the caller chose. Undefined: none. */
  maxOutputTokens: number | undefined;
  price: TextPrice;
  /** The tokens of the hold. Of output that is the caller's bound, or the model's maximum where the upstream cannot get a bound. */
  bounds: TokenBounds;
  /** Parts that have prices of their own. Absent: none. */
  heldContent?: HeldContent;
  /** USD micros. */
  holdAmount: bigint;
  /**
   * USD micros. A smaller hold is enough down to this amount. Then the bound of the output falls to the tokens that it pays for, and
   * the upstream gets that bound. Undefined where the caller chose the bounds of the hold.
   */
  leastHold: bigint | undefined;
  /** Would a smaller `max_output_tokens` make the hold smaller? */
  heldByBound: boolean;
  /** Used for estimates. */
  media: TakenMedia;
  mediaTokens: MediaTokens;
  items: number;
  /** Tokens of input that the body has as numbers. Absent: none. */
  tokensAsSuch?: number;
  /** The audio to be transcribed. Absent: none. */
  sound?: Sound;
  toolTokens: number;
  /** True where it names a tool that the upstream carries out, whose results become input. */
  hosted: boolean;
  guessedInput: number;
}

/** Facts of a request without a conversation, and so without instructions, media, items, tools and charged output. */
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
