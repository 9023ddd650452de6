// Sends a text request to one upstream over HTTP, and reads its answer whole or as a stream. `plans.ts` says what is sent and how
// the answer is read.

import { type Awaitable, after } from "#kit/base/awaitable.ts";
import { isRefusal } from "#kit/base/errors.ts";
import { exactObject } from "#kit/base/exact-json.ts";
import { jsonInTurns, turn } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { OutputLimit, type Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { anyObjectIn, callUpstream, errorIn, isTooDeep, readErrorBody } from "../call.ts";
import { encodeForm } from "../form.ts";
import { capabilitiesOf } from "../protocols.ts";
import { retryAfterOf } from "../retry-after.ts";
import { factsOf, type RequestFacts } from "./answer-defaults.ts";
import { errorOfChoice, errorOfChunk } from "./chat/native.ts";
import type { UpstreamsContext } from "./context.ts";
import type { UpstreamEvents } from "./events.ts";
import { failureOf, failureOfError, failureOfStatus, UpstreamFailure } from "./failure.ts";
import { textOfAnswer } from "./generated-text.ts";
import { ignoredParameters, leftBetas } from "./ignored.ts";
import { nothingUnseen, unseenOf } from "./judging/hidden-output.ts";
import { countsItself, OutputGate } from "./judging/output-gate.ts";
import { LargeParts, liftParts } from "./large-parts.ts";
import { embeddingBytes, largeAnswerBytes, roomlessBytes } from "./limits.ts";
import { type PlainRequest, readPlain } from "./plain.ts";
import { type Plan, planFor } from "./plans.ts";
import {
  bytesOfBody,
  type JsonAnswer,
  type StreamAnswer,
  type TextOperation,
  type UpstreamRequest,
} from "./port.ts";
import { readStream } from "./read-stream.ts";
import { readWhole } from "./read-whole.ts";
import { bareText } from "./responses/bare-output.ts";
import type { ReadAnswer } from "./responses/json-answer.ts";
import { fieldsOf } from "./transcription.ts";
import { usageIn } from "./usage.ts";
import {
  isEventStream,
  objectOfStream,
  type StreamFacts,
  type WholeStream,
} from "./whole-stream.ts";

/** Answers a request at one upstream. Throws `UpstreamFailure`, a refusal, or the signal's reason. */
export type Driver = (
  request: UpstreamRequest,
  upstream: Upstream,
) => Awaitable<JsonAnswer | StreamAnswer>;

/** Additions of a protocol to plain requests and answers. */
export interface HttpExtras {
  /** Headers of the protocol. */
  headers?(request: UpstreamRequest): Readonly<Record<string, string>>;
  /** Parameters that the upstream reports as left out, by their names in a header. */
  ignored?(reply: HttpReply): readonly string[];
}

/** The parts that one driver's requests share. */
interface Driving extends Pick<UpstreamsContext, "clock" | "secrets" | "http"> {
  events: UpstreamEvents;
  lift: NonNullable<UpstreamsContext["lift"]>;
  /** Models of upstreams that refuse base64. There are as many as the catalogs have named. */
  numbersOnly: Set<string>;
}

/** The driver of protocols in the formats of OpenAI. The protocol's row says which of them it knows. */
export function createHttpDriver(
  context: Pick<UpstreamsContext, "clock" | "ids" | "secrets" | "http" | "lift" | "plain">,
  events: UpstreamEvents,
  extras: HttpExtras = {},
): Driver {
  const { lift = async (job) => liftParts(job) } = context;
  const driving: Driving = { ...context, events, lift, numbersOnly: new Set() };
  const askAs = (plan: Plan, facts: RequestFacts, request: UpstreamRequest, upstream: Upstream) => {
    plan.headers ??= extras.headers?.(request);
    const isBase64 = plan.plain?.operation === "embeddings" && plan.plain.format === "base64";
    const ask = isBase64 ? askForVectors : post;
    return after(ask(plan, request, upstream, driving), (reply) => {
      const there = extras.ignored?.(reply) ?? [];
      const leftOut = [
        ...(request.leftOut ?? []),
        ...(plan.leftOut ?? []),
        ...(request.betas ? leftBetas(request.betas, upstream) : []),
      ];
      const { sent = plan.body, path } = plan;
      const { asked, operation, stream } = request;
      const told = { asked, operation, stream, leftOut };
      request.onIgnored?.(ignoredParameters(told, sent, path, there));
      if (!plan.plain) return answerOf(reply, plan, facts, request, upstream, driving);
      // These answers have no text that a bound of output could cut.
      request.onAnswering?.();
      return plainAnswer(reply, plan.plain, request, upstream, context);
    });
  };
  return (request, upstream) => {
    const facts = factsOf(request, context);
    const planned = planFor(upstream, request, facts);
    if (!planned) throw new UpstreamFailure("incapable");
    return planned instanceof Promise
      ? planned.then((plan) => askAs(plan, facts, request, upstream))
      : askAs(planned, facts, request, upstream);
  };
}

/** Reads the answer of a conversation. It waits only for a body that is long or not here yet, and for counts of a cut. */
function answerOf(
  reply: HttpReply,
  plan: Plan,
  facts: RequestFacts,
  request: UpstreamRequest,
  upstream: Upstream,
  { events, lift }: Driving,
): Awaitable<JsonAnswer | StreamAnswer> {
  const isStream = request.stream && request.operation !== "compact";
  const onCut = () => {
    const isTold = upstream.outputLimit !== OutputLimit.NONE;
    events.cut(upstream.name, isTold && request.maxOutputTokens !== undefined);
  };
  const gate = new OutputGate(request.outputBound, countsItself(request, upstream));
  const { accountId, signal } = request;
  const isChat = request.operation === "chat";
  const isGrouped = isChat && (facts.chat.stops ?? []).length > 0;
  const parts = new LargeParts({ lift, isChat, isGrouped, accountId, signal });
  const { translation } = plan;
  if (isStream && !reply.headers["content-type"]?.includes("json")) {
    const told = { reply, gate, onCut, request, upstream: upstream.name, events, parts };
    return readStream({ ...told, reader: plan.reader(), parser: translation?.parser() });
  }
  request.onAnswering?.();
  const isNative = plan.path === "/chat/completions";
  const isMessages = request.operation === "messages" && plan.path === "/messages";
  const reading = wholeObject(reply, request, {
    ...{ isChat: isNative, facts, parts, translation },
    ...(isMessages && { messageReader: plan.reader }),
  });
  return after(reading, ({ object: came, unseen: hidden, text }) => {
    const error = errorInstead(came);
    if (error) throw withUsage(failureOfError(error), came);
    const bare = bareText(came);
    const unseen = hidden ?? (bare === undefined ? unseenOf(came) : nothingUnseen);
    return after(gate.cutWhole(came, bare), (cut) => {
      if (cut) onCut();
      const told = { upstream: upstream.name, isCut: cut !== undefined, parts };
      try {
        // An upstream that cannot stream answers as a whole.
        if (isStream) return readWhole(cut ?? came, plan.reader(), told);
        const read = cut ? plan.readJson(cut) : plan.readJson(came, bare);
        const answer = { ...jsonAnswer(read, upstream.name), isCut: told.isCut, unseen };
        // A compaction keeps its caller's messages, which were not generated.
        if (request.operation !== "compact") answer.outputText = text ?? answer.outputText;
        if (parts.isEmpty) return answer;
        return turn().then(() => ({ ...answer, body: parts.fill(bytesOfBody(answer.body)) }));
      } catch (error) {
        throw withUsage(error, came);
      }
    });
  });
}

/**
 * Asks for vectors in base64. An upstream that refuses base64, or the whole parameter, is asked for numbers, and genmesh makes base64
 * of them.
 */
async function askForVectors(
  plan: Plan,
  request: UpstreamRequest,
  upstream: Upstream,
  context: Omit<Driving, "events" | "lift">,
): Promise<HttpReply> {
  const { numbersOnly } = context;
  const name = JSON.stringify([upstream.baseUrl, request.upstreamModel]);
  const { encoding_format: _, ...withoutFormat } = plan.body;
  const forNumbers = () => post({ ...plan, body: withoutFormat }, request, upstream, context);
  if (numbersOnly.has(name)) return forNumbers();
  try {
    return await post(plan, request, upstream, context);
  } catch (error) {
    const isRefused = error instanceof UpstreamFailure && error.kind === "invalid_request";
    if (!isRefused || (error.param ?? "encoding_format") !== "encoding_format") throw error;
    const reply = await forNumbers();
    // The inputs were not the reason for the refusal.
    numbersOnly.add(name);
    return reply;
  }
}

/** Adds usage to an error. A reply that is no answer was generated too, where its usage says that. */
function withUsage<E>(error: E, came: JsonObject): E {
  if (error instanceof UpstreamFailure) error.usage ??= usageIn(came)?.usage;
  return error;
}

/** An error that the upstream sent instead of an answer. Nothing was generated, so that another upstream may be asked. */
function errorInstead(came: JsonObject): JsonObject | undefined {
  const [choice] = Array.isArray(came.choices) ? came.choices : [];
  const ofChoice = isJsonObject(choice) ? errorOfChoice(choice) : undefined;
  const error = ofChoice ?? errorOfChunk(came);
  if (!error) return undefined;
  const isAnswer = [came.choices, came.output, came.content].some(Array.isArray);
  const isEmpty = !isAnswer || textOfAnswer(came) === "";
  return isEmpty && !usageIn(came) ? error : undefined;
}

/** An answer in the form of the port. */
export function jsonAnswer({ object, ...rest }: ReadAnswer, upstream: string): JsonAnswer {
  return { kind: "json", ...rest, body: object, upstream };
}

/** Sends a request. Answers a reply with a status of success. */
function post(
  plan: Plan,
  request: UpstreamRequest,
  upstream: Upstream,
  context: Pick<Driving, "clock" | "secrets" | "http">,
): Awaitable<HttpReply> {
  const isStream = plan.body.stream === true;
  const { sound, onSent, signal } = request;
  const form = sound && encodeForm(fieldsOf(plan.body, sound));
  const writing: Awaitable<Written> = form ?? jsonInTurns(plan.body);
  return after(writing, (written) => {
    const isForm = typeof written === "object" && "headers" in written;
    const body = isForm ? written.body : written;
    const headers = {
      ...(isForm ? written.headers : { "content-type": "application/json" }),
      accept: isStream ? "text/event-stream" : "application/json",
      // Events must come when they are made, not when a compressor's window is full.
      "accept-encoding": "identity",
      ...plan.headers,
    };
    signal.throwIfAborted();
    const url = `${upstream.baseUrl}${plan.path}`;
    const key = capabilitiesOf(upstream.protocol)?.key;
    const asked = { upstream, key, method: "POST", url, headers, body } as const;
    const call = { ...asked, isStream, onSent, signal };
    return callUpstream(context, call).then((reply) => {
      if (reply.status >= 200 && reply.status <= 299) return reply;
      return failureOfReply(reply, request, context.clock.now()).then(raiseFailure);
    }, raiseFailure);
  });
}

/** A body in JSON, or a form with its header. */
type Written = string | Uint8Array | Awaited<ReturnType<typeof encodeForm>>;

async function plainAnswer(
  reply: HttpReply,
  plain: PlainRequest,
  request: UpstreamRequest,
  { name }: Upstream,
  {
    plain: read = async (bytes, asked) => readPlain(bytes, asked),
  }: Pick<UpstreamsContext, "plain">,
): Promise<JsonAnswer> {
  const { accountId, signal } = request;
  const isCounted = plain.operation === "embeddings";
  const bytes = await wholeBody(
    reply,
    request,
    isCounted ? plain.inputs * embeddingBytes : undefined,
  );
  const found = await read(bytes, plain, { accountId, signal });
  if (found.answer) return { kind: "json", ...found.answer, upstream: name };
  const failure = new UpstreamFailure("garbage");
  failure.usage = found.usage;
  throw failure;
}

function wholeObject(
  reply: HttpReply,
  request: UpstreamRequest,
  read: StreamFacts,
): Awaitable<Pick<WholeStream, "object"> & Partial<WholeStream>> {
  return after(wholeBody(reply, request), (bytes) => {
    if (isEventStream(bytes)) return objectOfStream(bytes, read);
    return after(read.parts.takeFrom(bytes), (readable) => {
      // Servers of Messages compare a turn with what they made, so its numbers are written again as they were.
      const isExact = read.messageReader && bytes.length <= largeAnswerBytes;
      const object = isExact ? exactObject(readable.toString()) : anyObjectIn(readable);
      if (!object) throw new UpstreamFailure("garbage");
      if (isTooDeep(readable)) throw withUsage(new UpstreamFailure("too_large"), object);
      // Parsing and writing a long text take a turn of the event loop each.
      const whole = { object: read.translation?.whole(object) ?? object };
      return bytes.length > largeAnswerBytes ? turn().then(() => whole) : whole;
    });
  });
}

/**
 * The whole body of an answer. It asks for room before it reads most of the body: for the body's length, or for `reckoned` bytes where
 * the length is unknown, or else for the longest possible. Where there is no room, or the upstream gives up during the wait, genmesh's
 * bound is the reason, and the upstream did not fail.
 */
function wholeBody(
  { body, headers }: HttpReply,
  { reach, signal }: UpstreamRequest,
  reckoned: number = answerLimits.jsonBytes,
): Awaitable<Buffer> {
  const mostBytes = answerLimits.jsonBytes;
  const announced = Number(headers["content-length"] ?? Number.NaN);
  const announcedBytes = Number.isSafeInteger(announced) ? announced : undefined;
  if (announcedBytes !== undefined && announcedBytes > mostBytes) {
    body.close();
    throw new UpstreamFailure("too_large");
  }
  const room = reach && {
    freeBytes: roomlessBytes,
    announcedBytes,
    async reach(bytes: number) {
      const wanted = announcedBytes ?? (bytes > reckoned ? mostBytes : reckoned);
      const size = Math.min(Math.max(wanted, bytes), mostBytes);
      await reach(size);
      return size;
    },
  };
  const reading = body.whole(mostBytes, room);
  if (!(reading instanceof Promise)) return reading;
  return reading.catch((error) => {
    signal.throwIfAborted();
    const isForRoom = isRefusal(error) || body.isHeldBack();
    if (isForRoom) throw new UpstreamFailure("too_large", { cause: error });
    // Servers send the head of such an answer once all of it is generated.
    const isCut = error instanceof UpstreamError && error.kind === "cut";
    if (isCut) throw new UpstreamFailure("cut", { cause: error });
    return raiseFailure(error);
  });
}

function raiseFailure(error: unknown): never {
  throw failureOf(error) ?? error;
}

/** Operations that every upstream of their protocol has. */
const usualOperations: ReadonlySet<TextOperation> = new Set(["responses", "chat", "messages"]);

async function failureOfReply(
  reply: HttpReply,
  request: UpstreamRequest,
  nowMs: number,
): Promise<Error> {
  const { status } = reply;
  const isPlain = status >= 500;
  const type = reply.headers["content-type"] ?? "";
  // Where the status alone decides the error, only usage is of interest. A body that is not declared as JSON has none.
  const isOfInterest = !isPlain || type.includes("json");
  if (!isOfInterest) reply.body.release();
  const body = isOfInterest ? await readErrorBody(reply) : {};
  const error = isPlain ? {} : errorIn(body);
  // The upstream has /responses, or chat, but not this operation. A missing model is another 404.
  const isMissing = status === 404 || status === 405 || status === 501;
  const isOptional = !usualOperations.has(request.operation);
  if (isOptional && isMissing && error.code !== "model_not_found") {
    return withUsage(new UpstreamFailure("incapable", { status }), body);
  }
  const failure = failureOfStatus(status, error, request.body);
  failure.retryAfterMs = retryAfterOf(reply.headers, nowMs);
  return withUsage(failure, body);
}
