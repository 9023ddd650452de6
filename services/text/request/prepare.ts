import { requiredString } from "#kit/body.ts";
import type { CatalogView } from "#kit/catalog-client.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { FairShare } from "#kit/fair-share.ts";
import type { JsonObject } from "#kit/json.ts";
import {
  type ChatSpec,
  type Model,
  ModelKind,
  type Upstream,
  UpstreamProtocol,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { leastOutputTokens, maxModelIdLength } from "../limits.ts";
import { holdAmountOf, priceOf, type TextPrice, type TokenBounds } from "../pricing.ts";
import { counterFor, type TokenCounter } from "../tokens/count.ts";
import { checkContext, guessInput, inputBoundOf } from "../tokens/input-bound.ts";
import { untranslatable } from "../upstream/chat/request.ts";
import { isNativeChat } from "../upstream/plans.ts";
import type { TextOperation } from "../upstream/port.ts";
import { checkChat } from "./chat.ts";
import type { CheckedBody } from "./checked.ts";
import { unsupported } from "./fields.ts";
import { type ImageSources, type TakenImages, takeImages } from "./images.ts";
import { type OpaqueMakers, pinUpstream } from "./opaque.ts";
import { passedOf } from "./parameters.ts";
import type { AnswerForm, ParsedRequest } from "./parse.ts";
import { checkCompact, checkResponses } from "./responses.ts";

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
  /** The model's `passParameters`. */
  passParameters: readonly string[];
  /** That part of the body's instructions, or of its first message; "" for none. */
  developerPrompt: string;
  callerInstructions: string | null;
  /** The bound of the output that the caller chose; undefined: none. */
  maxOutputTokens: number | undefined;
  price: TextPrice;
  bounds: TokenBounds;
  /** USD micros. */
  holdAmount: bigint;
  /**
   * USD micros, from which on a smaller hold will do: the bound of the output then falls to what it pays for, and upstream
   * is told. Undefined where the caller chose the bound.
   */
  leastHold: bigint | undefined;
  /** For estimates. */
  images: TakenImages;
  items: number;
  guessedInput: number;
}

/** What preparing asks of others. */
export interface PrepareContext {
  view: CatalogView;
  images: ImageSources;
  counter: TokenCounter;
  /** Places for counting before there is money. */
  contextCounts: FairShare;
  makers: OpaqueMakers;
}

/**
 * Validates a request against the catalog, takes its images in, and prices it: everything before money.
 * Refuses with the public code and the path of the field at fault. Changes `parsed.body`.
 */
export async function prepareRequest(
  parsed: ParsedRequest,
  caller: { accountId: string; admission: Admission | undefined },
  context: PrepareContext,
  signal: AbortSignal,
): Promise<PreparedRequest> {
  const { view } = context;
  const { model, spec } = chatModel(parsed.body, view, caller.admission);
  const capable = capableUpstreams(parsed.operation, model, view);
  const developerPrompt = spec.developerPrompt ?? view.snapshot.developerPrompt;
  const asked = { ...parsed.body };
  const checked = await check(parsed, spec, developerPrompt);
  const body = passedOf(checked.body, parsed.operation, spec);
  const upstreams = await pinUpstream(checked.opaque, {
    accountId: caller.accountId,
    upstreams: parsed.operation === "chat" ? chatUpstreams(capable, body, spec) : capable,
    isKnown: (name) => Object.hasOwn(view.snapshot.upstreams, name),
    makers: context.makers,
  });
  const taking = {
    accountId: caller.accountId,
    inlineAddresses: upstreams.some((upstream) => upstream.inlineImages),
  };
  const images = await takeImages(checked.images, context.images, taking, signal);
  const input = inputBoundOf(checked, images, parsed.weight, developerPrompt, spec);
  // A hosted tool's bound is the whole window; what it leaves room for is known only upstream.
  const own = inputBoundOf(
    { ...checked, hosted: false },
    images,
    parsed.weight,
    developerPrompt,
    spec,
  );
  await checkContext(checked, images, own, spec, {
    counter: counterFor(caller.accountId, context.counter),
    turn: () => context.contextCounts.take(caller.accountId, signal),
  });
  const price = priceOf(spec);
  const most = Number(spec.maxOutputTokens);
  const bounds = { input, output: checked.maxOutputTokens ?? most };
  const least = { input, output: Math.min(most, leastOutputTokens) };
  const isChosen = checked.maxOutputTokens !== undefined;
  return {
    operation: parsed.operation,
    form: parsed.form,
    model,
    catalogVersion: view.snapshot.version,
    upstreams,
    body,
    asked,
    passParameters: spec.passParameters,
    developerPrompt,
    callerInstructions: checked.callerInstructions,
    maxOutputTokens: checked.maxOutputTokens,
    price,
    bounds,
    holdAmount: holdAmountOf(price, bounds),
    leastHold: isChosen ? undefined : holdAmountOf(price, least),
    images,
    items: checked.items,
    guessedInput: Math.min(guessInput(parsed.weight, images, developerPrompt), input),
  };
}

function chatModel(
  body: JsonObject,
  view: CatalogView,
  admission: Admission | undefined,
): { model: Model; spec: ChatSpec } {
  const id = requiredString(body, "model", { min: 1 });
  if (id.length > maxModelIdLength) {
    refuse(ErrorReason.MODEL_NOT_FOUND, {
      param: "model",
      metadata: { model: id.slice(0, maxModelIdLength) },
    });
  }
  const model = view.findModel(id, ModelKind.CHAT);
  const allowed = admission?.allowedModels ?? [];
  if (allowed.length > 0 && !allowed.includes(id)) {
    refuse(ErrorReason.PERMISSION_DENIED, {
      param: "model",
      message: "The API key may not use this model.",
    });
  }
  if (model.spec.case !== "chat") throw new TypeError("a chat model without its limits");
  return { model, spec: model.spec.value };
}

/** Upstreams that speak the operation: a `chat-completions` one serves chat alone. */
function capableUpstreams(
  operation: TextOperation,
  model: Model,
  view: CatalogView,
): readonly Upstream[] {
  const all = view.upstreamsOf(model);
  if (operation === "chat") return all;
  const capable = all.filter((one) => one.protocol !== UpstreamProtocol.CHAT_COMPLETIONS);
  if (capable.length > 0) return capable;
  refuse(ErrorReason.MODEL_NOT_RESPONSES_CAPABLE, {
    param: "model",
    metadata: { model: model.id },
  });
}

/** Those that can be asked for what the body asks for. Refuses at the field that none can be asked for. */
function chatUpstreams(
  upstreams: readonly Upstream[],
  body: JsonObject,
  spec: ChatSpec,
): readonly Upstream[] {
  if (upstreams.every(({ protocol }) => isNativeChat(protocol))) return upstreams;
  const fault = untranslatable(body, spec.passParameters);
  if (!fault) return upstreams;
  const able = upstreams.filter(({ protocol }) => isNativeChat(protocol));
  return able.length > 0 ? able : unsupported(fault.param, fault.message);
}

function check(
  parsed: ParsedRequest,
  spec: ChatSpec,
  developerPrompt: string,
): Promise<CheckedBody> {
  const { body } = parsed;
  if (parsed.form === "json") delete body.stream;
  switch (parsed.operation) {
    case "responses":
      return checkResponses(body, spec, developerPrompt);
    case "compact":
      return checkCompact(body, spec, developerPrompt);
    case "chat":
      return checkChat(body, spec, developerPrompt);
  }
}
