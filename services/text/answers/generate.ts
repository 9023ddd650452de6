import {
  ErrorReason,
  isRefusal,
  type Reason,
  RefusalError,
  unavailable,
} from "#kit/base/errors.ts";
import { staged } from "#kit/stream/stages.ts";
import type { Clock } from "#kit/time/clock.ts";
import { failureOf, type UpstreamFailure } from "../../upstreams/text/failure.ts";
import type {
  JsonAnswer,
  StreamAnswer,
  TextOperation,
  TextUpstreams,
} from "../../upstreams/text/port.ts";
import type { TextEvents } from "../base/events.ts";
import { usageWaitMs } from "../base/limits.ts";
import type { LargeAnswers } from "../large/index.ts";
import { createSilence, unseenInput, unseenTokens } from "../metering/hidden-time.ts";
import { cutBoundOf, type TokenBounds } from "../metering/pricing.ts";
import { withShownCost } from "../metering/shown-charge.ts";
import type { Metered } from "../paid/paid-request.ts";
import type { PreparedRequest } from "../request/prepared.ts";
import { counterFor, countOrGuess, type TokenCounter } from "../tokens/count.ts";
import { finishReasonOf } from "./answer-facts.ts";
import type { AnswerRoom, AnswerRooms } from "./answer-room.ts";
import { createEventRun } from "./event-run.ts";
import type { AnswerNotes } from "./joins.ts";
import { keepable, piecesOf } from "./replay.ts";
import { Stopped, stopped, stopReasonOf } from "./stop-reason.ts";

/** What sending needs. */
export interface GenerateContext {
  clock: Clock;
  upstreams: TextUpstreams;
  events: TextEvents;
  counter: TokenCounter;
  /** Works on whole answers. */
  large: Pick<LargeAnswers, "run">;
  /** Have room in memory for them. */
  rooms: AnswerRooms;
}

/** An answer that has begun. */
export type Begun =
  /**
   * `cost`: USD micros that it was charged; undefined where that is not known. `room`: what its bytes have in memory, to be given back once its
   * caller has taken them; undefined where they need none.
   */
  | { kind: "json"; body: Uint8Array; cost?: bigint | undefined; room?: AnswerRoom | undefined }
  /** Bytes of whole events, as they are ready; for one reader. */
  | { kind: "events"; events: AsyncIterable<Uint8Array> };

/**
 * Sends a paid request, and sees it through to its settlement in every case: the answer's end, a broken upstream, the
 * caller's leaving (`stop` aborts with `Stopped`). Refuses with what upstream's failure means, before any output.
 */
export async function generate(
  request: PreparedRequest,
  callId: string,
  metered: Metered,
  stop: AbortController,
  isKept: boolean,
  context: GenerateContext,
): Promise<GeneratedAnswer> {
  let room: AnswerRoom | undefined;
  const reach = (bytes: number, signal: AbortSignal) => {
    room ??= context.rooms.open(metered.accountId, signal);
    return room.reach(bytes);
  };
  const over = () => room?.[Symbol.dispose]();
  try {
    const begun = await send(request, { callId, metered, stop, isKept, reach }, context);
    if (!room) return begun;
    if (begun.kind === "json") {
      room.shrink(begun.body.length);
      return { ...begun, room };
    }
    stop.signal.addEventListener("abort", over, { once: true });
    if (stop.signal.aborted) over();
    const fail = (error: unknown) => {
      over();
      return error;
    };
    return { ...begun, events: staged(begun.events, { end: over, fail, leave: over }) };
  } catch (error) {
    over();
    throw error;
  }
}

type GeneratedAnswer = Begun & Pick<AnswerNotes, "ignored">;

/** What one sending is about. `reach`: as `UpstreamRequest.reach`, until the signal aborts. */
interface Sending {
  callId: string;
  metered: Metered;
  stop: AbortController;
  isKept: boolean;
  reach: (bytes: number, signal: AbortSignal) => Promise<void>;
}

async function send(
  request: PreparedRequest,
  { callId, metered, stop, isKept, reach }: Sending,
  context: GenerateContext,
): Promise<GeneratedAnswer> {
  metered.onLost = () => stop.abort(stopped("lost"));
  let answer: JsonAnswer | StreamAnswer;
  const ignored: string[] = [];
  let isAnswering = false;
  const { clock } = context;
  const startedAt = clock.steady();
  const { spec } = request.model;
  const hiddenRate = spec.case === "chat" ? Number(spec.value.hiddenTokensPerSecond) : 0;
  let silence = createSilence(clock, hiddenRate);
  const onSent = () => {
    silence = createSilence(clock, hiddenRate);
    metered.isSent = true;
    metered.unseenInput = () => unseenInput(undefined, request);
  };
  const onAnswering = () => {
    isAnswering = true;
    silence.over();
  };
  const counter = counterFor(metered.accountId, context.counter);
  const upstream = new AbortController();
  const closeUpstream = () => upstream.abort(stop.signal.reason);
  const onStop = () => {
    silence.over();
    // All of it is generated: its usage is worth waiting for, though its caller has left.
    if (!isAnswering || stopReasonOf(stop.signal) !== "left") closeUpstream();
    else void clock.sleep(usageWaitMs).then(closeUpstream);
  };
  stop.signal.addEventListener("abort", onStop, { once: true });
  if (stop.signal.aborted) onStop();
  try {
    answer = await context.upstreams.send({
      accountId: metered.accountId,
      operation: request.operation,
      body: request.body,
      sound: request.sound,
      stream: request.form !== "json",
      maxOutputTokens: toldBound(request, metered.bounds),
      outputBound: {
        tokens: cutBoundOf(request, metered.bounds),
        count: (texts, limit) => countOrGuess(counter, texts, limit),
      },
      modelId: request.model.id,
      upstreamModel: request.model.upstreamModel,
      upstreams: request.upstreams,
      callerInstructions: request.callerInstructions,
      developerPrompt: request.developerPrompt,
      requestId: metered.requestId,
      callId,
      onSent,
      asked: request.asked,
      leftOut: request.leftOut,
      passParameters: request.passParameters,
      onIgnored: (names) => ignored.push(...names),
      onAnswering,
      reach: (bytes) => reach(bytes, upstream.signal),
      signal: upstream.signal,
    });
  } catch (error) {
    const reason = stopReasonOf(stop.signal);
    const left = metered.isSent ? "left" : "unsent";
    const isTooLarge = upstreamFailure(error)?.kind === "too_large";
    const { cost } = await metered.finish({
      kind: reason === "left" ? left : isTooLarge ? "ended" : "failed",
      hasAnswer: isTooLarge,
      reported: upstreamFailure(error)?.usage,
      unseenTokens: reason === "left" ? silence.tokens() : 0,
      unseenInput: unseenInput(undefined, request),
    });
    throw charged(reason ? stop.signal.reason : error, cost);
  } finally {
    stop.signal.removeEventListener("abort", onStop);
  }
  const { operation, form } = request;
  const onFirstOutput = () => {
    context.events.firstOutput(operation, clock.steady() - startedAt);
  };
  if (answer.kind === "json") {
    const { large } = context;
    const { accountId } = metered;
    const finished = await finishJson(request, answer, metered, { isKept, ignored, large });
    const { body, cost } = finished;
    onFirstOutput();
    if (form === "json") return { kind: "json", body, cost, ignored };
    const ready = await large
      .run("events", { accountId }, body, operation, form)
      .catch((error) => Promise.reject(charged(error, cost)));
    return { kind: "events", events: piecesOf(ready), ignored };
  }
  const { events, large } = context;
  const run = createEventRun(answer, {
    request,
    metered,
    stop,
    closeUpstream,
    isKept,
    ignored,
    withUsage: form === "events+usage",
    onFirstOutput,
    silence,
    clock,
    events,
    large,
  });
  return { kind: "events", events: run, ignored };
}

/** The failure of an upstream that a refusal tells of. */
function upstreamFailure(error: unknown): UpstreamFailure | undefined {
  return error instanceof Error ? failureOf(error.cause) : undefined;
}

/** The caller's bound, or one that fell below the model's maximum because no more could be paid for. No server knows one of a compaction. */
function toldBound(request: PreparedRequest, held: TokenBounds): number | undefined {
  if (request.operation === "compact") return undefined;
  const isLowered = held.output < request.bounds.output;
  return isLowered ? cutBoundOf(request, held) : request.maxOutputTokens;
}

async function finishJson(
  request: PreparedRequest,
  answer: JsonAnswer,
  metered: Metered,
  {
    isKept,
    ignored,
    large,
  }: Pick<GenerateContext, "large"> & {
    isKept: boolean;
    ignored: readonly string[];
  },
): Promise<{ body: Uint8Array; cost: bigint | undefined }> {
  const { operation } = request;
  const { ending, failure, usage, opaque, upstream, isCut } = answer;
  metered.saw(answer.outputText);
  let { body } = answer;
  /** Why it cannot be shown with what it cost. */
  let fault: unknown;
  const { isOurs, cost } = await metered.finish({
    kind: ending,
    finishReason: finishReasonOf(body, ending),
    reported: usage,
    cutAt: isCut ? cutBoundOf(request, metered.bounds) : undefined,
    unseenTokens: unseenTokens(answer.unseen, 0),
    unseenInput: unseenInput(answer.unseen, request),
    opaque: { values: opaque, upstream },
    ignored,
    async answer(cost, estimate) {
      if (ending === "failed") return undefined;
      try {
        body = await withShownCost(operation, body, { cost, estimate }, large, metered);
      } catch (error) {
        // It was generated, and is paid for all the same.
        fault = error;
        return undefined;
      }
      return isKept ? keepable(body) : undefined;
    },
  });
  // Another process has closed it, and charged for what was seen.
  if (!isOurs) throw unavailable();
  if (fault) throw charged(fault, cost);
  if (ending === "failed") {
    throw charged(failedAs(operation, failure ?? ErrorReason.MODEL_REQUEST_FAILED), cost);
  }
  return { body, cost };
}

function failedAs(operation: TextOperation, reason: Reason): RefusalError {
  const isTooLong = reason === ErrorReason.CONTEXT_LENGTH_EXCEEDED;
  const param = operation === "chat" ? "messages" : "input";
  return new RefusalError(reason, isTooLong ? { param } : {});
}

/** The error of a request, which says what was charged all the same: then no client sends it again by itself. */
function charged(error: unknown, cost: bigint | undefined): unknown {
  if (!cost) return error;
  const refusal = error instanceof Stopped ? unavailable(error) : error;
  if (!isRefusal(refusal)) return error;
  const { reason, param, metadata, message, cause } = refusal;
  return new RefusalError(reason, {
    message: `${message} The model worked on the request, and that work is charged.`,
    ...(param === undefined ? {} : { param }),
    metadata: { ...metadata, cost: cost.toString() },
    cause,
  });
}
