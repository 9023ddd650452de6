// Does everything to a request before its money is held: check, choice of upstreams, images and files, price. It orders the steps
// of this folder.

import { createHmac } from "node:crypto";
import type { CatalogView } from "#common/agreements/catalog-client.ts";
import { type Awaitable, after } from "#kit/base/awaitable.ts";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import type { FairShare } from "#kit/share/fair-share.ts";
import {
  type ChatSpec,
  ModelKind,
  OutputLimit,
  type Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { isNativeChat, speaksMessages } from "../../upstreams/protocols.ts";
import { untranslatable } from "../../upstreams/text/chat/request.ts";
import { callerNames } from "../../upstreams/text/responses/complete-response.ts";
import { leastOutputTokens } from "../base/limits.ts";
import type { SoundMeter } from "../files/measuring/meter.ts";
import { listedTerms, type PricedParts, type Terms } from "../metering/held-content.ts";
import { holdAmountOf, priceOf } from "../metering/pricing.ts";
import { counterFor, type TokenCounter } from "../tokens/count.ts";
import { checkContext, guessInput, inputBoundOf, mediaTokensOf } from "../tokens/input-bound.ts";
import { checkChat, leaveStateOut } from "./chat.ts";
import type { CheckedBody } from "./checked.ts";
import { prepareEmbeddings } from "./embeddings.ts";
import { unsupported } from "./fields.ts";
import type { ImageSources } from "./images.ts";
import { type TakenMedia, takeMedia } from "./media.ts";
import { checkMessages } from "./messages.ts";
import { leaveThinkingOut } from "./messages-state.ts";
import { suitableUpstreams } from "./messages-upstreams.ts";
import { capableUpstreams, findAllowed } from "./model.ts";
import { type OpaqueMakers, pinUpstream } from "./opaque.ts";
import { passedOf } from "./parameters.ts";
import type { ParsedRequest } from "./parse.ts";
import type { PreparedRequest } from "./prepared.ts";
import { checkCompact, checkResponses } from "./responses.ts";
import { stickOf } from "./stick.ts";
import { prepareTranscription } from "./transcription.ts";

/** Dependencies of preparing. */
export interface PrepareContext {
  view: CatalogView;
  images: ImageSources;
  counter: TokenCounter;
  soundMeter: SoundMeter;
  /** Places for counting before there is a hold. */
  contextCounts: FairShare;
  makers: OpaqueMakers;
}

/**
 * Does everything before the hold: validates a request against the catalog, takes its images and files inline, and prices it. Refuses
 * with the public code and the path of the wrong field. Changes `parsed.body`.
 */
export function prepareRequest(
  parsed: ParsedRequest,
  caller: Caller,
  context: PrepareContext,
  signal: StopSignal,
): Awaitable<PreparedRequest> {
  if (parsed.operation === "embeddings") {
    return prepareEmbeddings(parsed, caller.admission, context.view);
  }
  if (parsed.operation === "transcriptions") {
    return prepareTranscription(parsed, caller, context, signal);
  }
  return prepareChat(parsed, caller, context, signal);
}

interface Caller {
  accountId: string;
  admission: Admission | undefined;
  /** The edge's name for the conversation. */
  conversation?: string | undefined;
  /** Beta features that a client of Anthropic's asks for. */
  betas?: readonly string[] | undefined;
}

/** Prepares a conversation. Waits only for a long body, opaque state, images and files, and counting. */
function prepareChat(
  parsed: ParsedRequest,
  { accountId, admission, conversation, betas }: Caller,
  context: PrepareContext,
  signal: StopSignal,
): Awaitable<PreparedRequest> {
  const { view } = context;
  const { operation, form } = parsed;
  const model = findAllowed(parsed.body, ModelKind.CHAT, view, admission);
  if (model.spec.case !== "chat") throw new TypeError("a chat model without its limits");
  const spec = model.spec.value;
  const capable = capableUpstreams(operation, model, view);
  const developerPrompt = spec.developerPrompt ?? view.snapshot.developerPrompt;
  const asked = { ...parsed.body };
  const ofClaude = operation === "messages" ? capable.filter(isOfClaude) : [];
  const isNative = ofClaude.length > 0;
  return after(inTurns(check(parsed, spec, developerPrompt, ofClaude)), (checked) => {
    const body = passedOf(checked.body, operation, spec);
    nameForAccount(body, accountId);
    const others = operation === "chat" ? chatUpstreams(capable, body, spec) : capable;
    // Where a turn of the model must stay as it was made, no upstream of another protocol can go on.
    const able = isNative ? ofClaude : others;
    const isTranslated = !isNative && able.some(isOfClaude);
    const suiting = isTranslated
      ? suitableUpstreams(able, body, operation, spec)
      : { upstreams: able, toolTokens: 0 };
    const pinning = after(suiting, ({ upstreams: suitable, toolTokens }) => {
      checked.toolTokens += toolTokens;
      return pinUpstream(checked.opaque, {
        accountId,
        inputParam: checked.inputParam,
        upstreams: suitable,
        isKnown: (name) => Object.hasOwn(view.snapshot.upstreams, name),
        makers: context.makers,
      });
    });
    return after(pinning, ({ upstreams, foreign, isPinned }) => {
      if (operation === "messages") leaveThinkingOut(body, foreign, ofClaude);
      else if (foreign.size > 0) leaveStateOut(body, foreign);
      const sources = { ...context.images, soundMeter: context.soundMeter };
      const taking = takeMedia(checked, sources, { accountId, upstreams }, signal);
      return after(taking, (media) => {
        const { own, ...input } = inputOf(parsed, checked, media, developerPrompt, spec);
        const fitting = checkContext(checked, media, own, spec, {
          counterOf: () => counterFor(accountId, context.counter),
          turn: () => context.contextCounts.take(accountId, signal),
        });
        return after(fitting, () => ({
          operation,
          form,
          model,
          upstreams,
          body,
          asked,
          developerPrompt,
          media,
          isPinned,
          stick: model.shares.length === 0 ? undefined : stickOf(accountId, asked, conversation),
          catalogVersion: view.snapshot.version,
          leftOut: checked.leftOut,
          betas,
          passParameters: spec.passParameters,
          callerInstructions: checked.callerInstructions,
          maxOutputTokens: checked.maxOutputTokens,
          ...holdOf(parsed, {
            ...{ checked, spec, upstreams, input: input.bound, own, body, media },
            mediaTokens: input.mediaTokens,
          }),
          mediaTokens: input.mediaTokens,
          items: checked.items,
          toolTokens: checked.toolTokens,
          hosted: checked.hosted,
          guessedInput: input.guessed,
        }));
      });
    });
  });
}

/** The tokens of an input: their bound, the same without additions of hosted tools (`own`), and a guess. */
function inputOf(
  { weight }: ParsedRequest,
  checked: CheckedBody,
  media: TakenMedia,
  developerPrompt: string,
  spec: ChatSpec,
) {
  const bound = inputBoundOf(checked, media, weight, developerPrompt, spec);
  // The bound for a hosted tool is the whole window. Only the upstream knows what room its results leave.
  const own = checked.hosted
    ? inputBoundOf({ ...checked, hosted: false }, media, weight, developerPrompt, spec)
    : bound;
  const mediaTokens = mediaTokensOf(media, spec);
  const beside = mediaTokens.estimate + checked.toolTokens;
  const guessed = Math.min(guessInput(weight, media, developerPrompt, beside), bound);
  return { bound, own, mediaTokens, guessed };
}

/** The bounds and the amount of a request's hold. `own`: the bound of its input without additions of hosted tools. */
function holdOf(
  { operation }: ParsedRequest,
  asked: {
    checked: CheckedBody;
    spec: ChatSpec;
    upstreams: readonly Upstream[];
    input: number;
    own: number;
  } & Omit<PricedParts, "operation" | "hostedTypes">,
): Pick<
  PreparedRequest,
  "price" | "bounds" | "heldContent" | "holdAmount" | "leastHold" | "heldByBound"
> {
  const { checked, spec, upstreams, input, own } = asked;
  const plain = priceOf(spec);
  const { hostedTypes } = checked;
  const terms: Terms = plain.list
    ? listedTerms(plain, plain.list, { ...asked, operation, hostedTypes })
    : { price: plain };
  const { price, held, counted } = terms;
  const most = Number(spec.maxOutputTokens);
  const isCompact = operation === "compact";
  const isTold = upstreams.every(({ outputLimit }) => outputLimit !== untold);
  const heldByBound = !isCompact && isTold;
  const chosen = heldByBound ? checked.maxOutputTokens : undefined;
  const bounds = { input, output: chosen ?? most, ...counted };
  // A compaction is no longer than its input.
  const shortest = isCompact ? own : (checked.maxOutputTokens ?? 0);
  const output = checked.mayFallTo ?? Math.max(leastOutputTokens, shortest);
  const least = { input, output: Math.min(most, output) };
  const isKept = chosen !== undefined && checked.mayFallTo === undefined;
  // An upstream that gets no bound generates the same, even for a small hold.
  const mayFall = !isKept && (isTold || isCompact);
  return {
    price,
    bounds,
    ...(held && { heldContent: held }),
    holdAmount: holdAmountOf(price, bounds, held),
    leastHold: mayFall ? holdAmountOf(price, least, held) : undefined,
    heldByBound,
  };
}

/** An upstream that knows no bound. Its hidden reasoning could not be cut at one here. */
const untold = OutputLimit.NONE;

function isOfClaude({ protocol }: Upstream): boolean {
  return speaksMessages(protocol);
}

/** Upstreams that can do all that the body asks for. Refuses at the field that none of them can do. */
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
  natives: readonly Upstream[],
): Generator<void, CheckedBody> {
  const { body, bytes } = parsed;
  if (parsed.form === "json") delete body.stream;
  switch (parsed.operation) {
    case "responses":
      return checkResponses(body, spec, developerPrompt);
    case "compact":
      return checkCompact(body, spec, developerPrompt);
    case "chat":
      return checkChat(body, spec, developerPrompt);
    case "messages":
      return checkMessages(body, spec, { developerPrompt, natives, bytes });
    case "embeddings":
    case "transcriptions":
      throw new TypeError("they have checks of their own");
  }
}

/**
 * Hashes the names of a caller's end users and caches with the account, because the upstream sees all accounts as one. So two accounts
 * that use the same name share no cache, and none can ask for the content of another's name. No upstream learns who a caller's users
 * are. Changes `body`.
 */
function nameForAccount(body: JsonObject, accountId: string): void {
  for (const name of callerNames) {
    const value = body[name];
    if (typeof value !== "string" || value === "") continue;
    // 43 characters. Upstreams take 64.
    body[name] = createHmac("sha256", accountId).update(value).digest("base64url");
  }
}
