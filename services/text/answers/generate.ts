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
  UpstreamRequest,
} from "../../upstreams/text/port.ts";
import type { TextEvents } from "../base/events.ts";
import { usageWaitMs } from "../base/limits.ts";
import type { LargeAnswers } from "../large/index.ts";
import { createSilence, type Silence, unseenInput, unseenTokens } from "../metering/hidden-time.ts";
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

/** Dependencies of sending. */
export interface GenerateContext {
  clock: Clock;
  upstreams: TextUpstreams;
  events: TextEvents;
  counter: TokenCounter;
  /** Works on whole answers. */
  large: Pick<LargeAnswers, "run">;
  /** Gives whole answers room in memory. */
  rooms: AnswerRooms;
}

/** An answer that has begun. */
export type Begun =
  /**
   * `cost`: USD micros that were charged. Undefined where the charge is unknown. `room`: the room of the bytes in memory, to be given
   * back once the caller has taken them. Undefined where they need none.
   */
  | { kind: "json"; body: Uint8Array; cost?: bigint | undefined; room?: AnswerRoom | undefined }
  /** Bytes of whole events, in the pieces in which they are ready. For one reader. */
  | { kind: "events"; events: AsyncIterable<Uint8Array> };

/**
 * Sends a paid request, and settles it in every case: at the answer's end, where the upstream breaks, or where the caller leaves
 * (`stop` aborts with `Stopped`). Refuses with the meaning of the upstream's failure, before any output.
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
    const sending = new Sending({ request, callId, metered, stop, isKept, reach }, context);
    const begun = await sending.send();
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

/** The request of one sending, and its terms. `reach`: like `UpstreamRequest.reach`, until the signal aborts. */
interface SendingOptions {
  request: PreparedRequest;
  callId: string;
  metered: Metered;
  stop: AbortController;
  isKept: boolean;
  reach: (bytes: number, signal: AbortSignal) => Promise<void>;
}

/** One request that is sent to an upstream, with its answer. */
class Sending {
  readonly #options: SendingOptions;
  readonly #context: GenerateContext;
  readonly #startedAt: number;
  /** Aborts when the upstream must be closed. */
  readonly #upstream = new AbortController();
  readonly #ignored: string[] = [];
  /** True once a whole answer is on its way. */
  #isAnswering = false;
  #silence: Silence;
  readonly #closeUpstream = () => this.#upstream.abort(this.#options.stop.signal.reason);
  readonly #onStop = () => {
    this.#silence.over();
    // The whole answer is generated. Waiting for its usage is worthwhile, though its caller has left.
    const isAwaited = this.#isAnswering && stopReasonOf(this.#options.stop.signal) === "left";
    if (isAwaited) void this.#context.clock.sleep(usageWaitMs).then(this.#closeUpstream);
    else this.#closeUpstream();
  };

  constructor(options: SendingOptions, context: GenerateContext) {
    this.#options = options;
    this.#context = context;
    this.#startedAt = context.clock.steady();
    this.#silence = this.#newSilence();
    options.metered.onLost = () => options.stop.abort(stopped("lost"));
  }

  async send(): Promise<GeneratedAnswer> {
    const answer = await this.#ask();
    return answer.kind === "json" ? this.#json(answer) : this.#events(answer);
  }

  async #ask(): Promise<JsonAnswer | StreamAnswer> {
    const { signal } = this.#options.stop;
    signal.addEventListener("abort", this.#onStop, { once: true });
    if (signal.aborted) this.#onStop();
    try {
      return await this.#context.upstreams.send(this.#upstreamRequest());
    } catch (error) {
      throw await this.#failed(error);
    } finally {
      signal.removeEventListener("abort", this.#onStop);
    }
  }

  #upstreamRequest(): UpstreamRequest {
    const { request, callId, metered, reach } = this.#options;
    const counter = counterFor(metered.accountId, this.#context.counter);
    const { signal } = this.#upstream;
    return {
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
      onSent: () => {
        this.#silence = this.#newSilence();
        metered.isSent = true;
        metered.unseenInput = () => unseenInput(undefined, request);
      },
      asked: request.asked,
      leftOut: request.leftOut,
      passParameters: request.passParameters,
      onIgnored: (names) => this.#ignored.push(...names),
      onAnswering: () => {
        this.#isAnswering = true;
        this.#silence.over();
      },
      reach: (bytes) => reach(bytes, signal),
      signal,
    };
  }

  /** Ends a request that got no answer. Answers the error for its caller. */
  async #failed(error: unknown): Promise<unknown> {
    const { request, metered, stop } = this.#options;
    const reason = stopReasonOf(stop.signal);
    const left = metered.isSent ? "left" : "unsent";
    const failure = upstreamFailure(error);
    const isTooLarge = failure?.kind === "too_large";
    const { cost } = await metered.finish({
      kind: reason === "left" ? left : isTooLarge ? "ended" : "failed",
      hasAnswer: isTooLarge,
      reported: failure?.usage,
      unseenTokens: reason === "left" ? this.#silence.tokens() : 0,
      unseenInput: unseenInput(undefined, request),
    });
    return charged(reason ? stop.signal.reason : error, cost);
  }

  async #json(answer: JsonAnswer): Promise<GeneratedAnswer> {
    const { request, metered, isKept } = this.#options;
    const { large } = this.#context;
    const ignored = this.#ignored;
    const { operation, form } = request;
    const { body, cost } = await finishJson(request, answer, metered, { isKept, ignored, large });
    this.#noteFirstOutput();
    if (form === "json") return { kind: "json", body, cost, ignored };
    const ready = await large
      .run("events", { accountId: metered.accountId }, body, operation, form)
      .catch((error) => Promise.reject(charged(error, cost)));
    return { kind: "events", events: piecesOf(ready), ignored };
  }

  #events(answer: StreamAnswer): GeneratedAnswer {
    const { request, metered, stop, isKept } = this.#options;
    const { clock, events, large } = this.#context;
    const run = createEventRun(answer, {
      request,
      metered,
      stop,
      closeUpstream: this.#closeUpstream,
      isKept,
      ignored: this.#ignored,
      withUsage: request.form === "events+usage",
      onFirstOutput: () => this.#noteFirstOutput(),
      silence: this.#silence,
      clock,
      events,
      large,
    });
    return { kind: "events", events: run, ignored: this.#ignored };
  }

  #noteFirstOutput(): void {
    const { clock, events } = this.#context;
    events.firstOutput(this.#options.request.operation, clock.steady() - this.#startedAt);
  }

  #newSilence(): Silence {
    const { spec } = this.#options.request.model;
    const hiddenRate = spec.case === "chat" ? Number(spec.value.hiddenTokensPerSecond) : 0;
    return createSilence(this.#context.clock, hiddenRate);
  }
}

/** The upstream's failure behind a refusal. */
function upstreamFailure(error: unknown): UpstreamFailure | undefined {
  return error instanceof Error ? failureOf(error.cause) : undefined;
}

/**
 * The bound that the upstream gets. It is the caller's, or one below the model's maximum because the hold pays for no greater one. No
 * server knows a bound of a compaction.
 */
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
  /** The reason why it cannot be shown with its cost. */
  let fault: unknown;
  const { isOurs, cost } = await metered.finish({
    kind: ending,
    finishReason: finishReasonOf(body, ending),
    reported: usage,
    cutAt: isCut ? cutBoundOf(request, metered.bounds) : undefined,
    unseenTokens: unseenTokens(answer.unseen, 0),
    unseenInput: unseenInput(answer.unseen, request),
    toolCalls: answer.unseen?.toolCalls,
    opaque: { values: opaque, upstream },
    ignored,
    async answer(cost, estimate) {
      if (ending === "failed") return undefined;
      try {
        body = await withShownCost(operation, body, { cost, estimate }, large, metered);
      } catch (error) {
        // The answer was generated, so it is charged nevertheless.
        fault = error;
        return undefined;
      }
      return isKept ? keepable(body) : undefined;
    },
  });
  // Another process has closed the request, and charged for the output so far.
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

/** The error of a request that was charged nevertheless. It names the charge, so that no client repeats the request by itself. */
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
