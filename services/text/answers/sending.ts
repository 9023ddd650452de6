// Sends a request whose money is held to the upstream, and settles it however it ends. `answering.ts` calls it, and hands streams
// over to `event-run.ts`.

import type { TextNotes } from "#common/agreements/text-port.ts";
import {
  ErrorReason,
  isRefusal,
  type Reason,
  RefusalError,
  unavailable,
} from "#kit/base/errors.ts";
import { Stop } from "#kit/base/stop.ts";
import { staged } from "#kit/stream/stages.ts";
import type { Clock } from "#kit/time/clock.ts";
import { BlockBinding } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { failureOf, inputParamOf, type UpstreamFailure } from "../../upstreams/text/failure.ts";
import { finishReasonOf } from "../../upstreams/text/finish-reason.ts";
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
import { type ChargedTokens, cutBoundOf, type TokenBounds } from "../metering/pricing.ts";
import type { ShownCharge } from "../metering/shown-usage.ts";
import { withShownCost } from "../metering/shown-usage.ts";
import type { Metered } from "../paid/paid-request.ts";
import type { PreparedRequest } from "../request/prepared.ts";
import { counterFor, countOrGuess, type TokenCounter } from "../tokens/count.ts";
import { failureFor, failureOfError } from "./answer-facts.ts";
import type { AnswerRoom, AnswerRooms } from "./answer-room.ts";
import { EventRun } from "./event-run.ts";
import type { Answer } from "./joins.ts";
import { keepable, piecesOf } from "./replay.ts";
import { Stopped, stopped, stopReasonOf } from "./stop-reason.ts";

/** Dependencies of sending. */
export interface SendingContext {
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

/** A paid request, and its terms. */
export interface Paid {
  request: PreparedRequest;
  callId: string;
  metered: Metered;
  stop: Stop;
  /** Is its answer kept for an idempotency key? */
  isKept: boolean;
}

/**
 * A paid request that is sent to an upstream, with its answer. It is settled in every case: at the answer's end, where the upstream
 * breaks, or where the caller leaves (`stop` aborts with `Stopped`).
 */
export class Sending {
  readonly #paid: Paid;
  readonly #context: SendingContext;
  readonly #startedAt: number;
  /** Aborts when the upstream must be closed. */
  readonly #upstream = new Stop();
  readonly #ignored: string[] = [];
  /** Room for a whole answer in memory. */
  #room: AnswerRoom | undefined;
  /** True once a whole answer is on its way. */
  #isAnswering = false;
  #silence: Silence;
  readonly #closeUpstream = () => this.#upstream.abort(this.#paid.stop.reason);
  readonly #onStop = () => {
    this.#silence.over();
    // The whole answer is generated. Waiting for its usage is worthwhile, though its caller has left.
    const isAwaited = this.#isAnswering && stopReasonOf(this.#paid.stop) === "left";
    if (isAwaited) void this.#context.clock.sleep(usageWaitMs).then(this.#closeUpstream);
    else this.#closeUpstream();
  };

  constructor(paid: Paid, context: SendingContext) {
    this.#paid = paid;
    this.#context = context;
    this.#startedAt = context.clock.steady();
    this.#silence = this.#newSilence();
    paid.metered.onLost = () => paid.stop.abort(stopped("lost"));
  }

  /** Sends it. Refuses with the meaning of the upstream's failure, before any output. */
  answer(): Promise<Answer> {
    const { stop } = this.#paid;
    stop.addEventListener("abort", this.#onStop);
    if (stop.aborted) this.#onStop();
    return this.#context.upstreams.send(this.#upstreamRequest()).then(
      (answer) => {
        stop.removeEventListener("abort", this.#onStop);
        return answer.kind === "stream" ? this.#inRoom(this.#events(answer)) : this.#json(answer);
      },
      (error) => {
        stop.removeEventListener("abort", this.#onStop);
        return this.#failed(error);
      },
    );
  }

  #notes(): TextNotes {
    const { request, metered } = this.#paid;
    const { output } = metered.bounds;
    const fallen = output < request.bounds.output ? { maxOutputTokens: output } : {};
    return { replayed: false, ignored: this.#ignored, ...fallen };
  }

  /** A stream whose room in memory ends with it. */
  #inRoom(events: AsyncIterable<Uint8Array>): Answer {
    const notes = { kind: "events", ...this.#notes() } as const;
    const room = this.#room;
    if (!room) return { ...notes, events };
    const { stop } = this.#paid;
    const over = () => room[Symbol.dispose]();
    stop.addEventListener("abort", over);
    if (stop.aborted) over();
    const fail = (error: unknown) => {
      over();
      return error;
    };
    return { ...notes, events: staged(events, { end: over, fail, leave: over }) };
  }

  #upstreamRequest(): UpstreamRequest {
    const { request, callId, metered } = this.#paid;
    const signal = this.#upstream;
    return {
      accountId: metered.accountId,
      operation: request.operation,
      body: request.body,
      sound: request.sound,
      stream: request.form !== "json",
      maxOutputTokens: toldBound(request, metered.bounds),
      outputBound: {
        tokens: cutBoundOf(request, metered.bounds),
        count: (texts, limit) => {
          const counter = counterFor(metered.accountId, this.#context.counter);
          return countOrGuess(counter, texts, limit);
        },
      },
      modelId: request.model.id,
      upstreamModel: request.model.upstreamModel,
      upstreams: request.upstreams,
      shares: request.model.shares,
      stick: request.stick ?? metered.requestId,
      isPinned: request.isPinned ?? false,
      callerInstructions: request.callerInstructions,
      developerPrompt: request.developerPrompt,
      requestId: metered.requestId,
      callId,
      onSent: () => {
        this.#silence = this.#newSilence();
        metered.isSent = true;
        metered.unseenInput = () => unseenInput(undefined, request);
      },
      onFailedTry: (one) => {
        metered.told.failedTries = [...(metered.told.failedTries ?? []), one];
      },
      asked: request.asked,
      leftOut: request.leftOut,
      betas: request.betas,
      passParameters: request.passParameters,
      dropsBlocks: dropsBlocks(request.model),
      onIgnored: (names) => this.#ignored.push(...names),
      onAnswering: () => {
        this.#isAnswering = true;
        this.#silence.over();
      },
      reach: (bytes) => {
        this.#room ??= this.#context.rooms.open(metered.accountId, signal);
        return this.#room.reach(bytes);
      },
      signal,
    };
  }

  /** Ends a request that got no answer. Throws the error for its caller. */
  async #failed(error: unknown): Promise<never> {
    const { request, metered, stop } = this.#paid;
    const reason = stopReasonOf(stop);
    const left = metered.isSent ? "left" : "unsent";
    const failure = upstreamFailure(error);
    const isTooLarge = failure?.kind === "too_large";
    const { cost } = await metered.finish({
      kind: reason === "left" ? left : isTooLarge ? "ended" : "failed",
      failure: reason === "left" ? undefined : failureOfError(error),
      hasAnswer: isTooLarge,
      reported: failure?.usage,
      unseenTokens: reason === "left" ? this.#silence.tokens() : 0,
      unseenInput: unseenInput(undefined, request),
    });
    throw this.#charged(reason ? stop.reason : error, cost);
  }

  async #json(answer: JsonAnswer): Promise<Answer> {
    const { request, metered, isKept } = this.#paid;
    const { large } = this.#context;
    const { operation, form } = request;
    const { ending, failure, usage, opaque, upstream, isCut } = answer;
    let cost: bigint | undefined;
    try {
      metered.saw(answer.outputText);
      const shown = (charge: ShownCharge) =>
        withShownCost(operation, answer.body, charge, large, metered);
      /** The body of an answer that is kept, or the reason why it cannot be shown with its cost. */
      let kept: Promise<Uint8Array> | undefined;
      const keep = async (cost: bigint, estimate: ChargedTokens | undefined) => {
        kept = Promise.resolve(shown({ cost, estimate }));
        // An answer that cannot be shown was generated, so it is charged nevertheless.
        return await kept.then(keepable, () => undefined);
      };
      const finished = await metered.finish({
        kind: ending,
        finishReason: finishReasonOf(answer.body, ending),
        failure: ending === "failed" ? failureFor(failedReason(failure)) : undefined,
        reported: usage,
        cutAt: isCut ? cutBoundOf(request, metered.bounds) : undefined,
        unseenTokens: unseenTokens(answer.unseen, 0),
        unseenInput: unseenInput(answer.unseen, request),
        toolCalls: answer.unseen?.toolCalls,
        opaque: { values: opaque, upstream },
        ignored: this.#ignored,
        answer: isKept && ending !== "failed" ? keep : undefined,
      });
      const { isOurs, estimate } = finished;
      cost = finished.cost;
      // Another process has closed the request, and charged for the output so far.
      if (!isOurs) throw unavailable();
      if (ending === "failed") throw failedAs(operation, failure);
      const showing = kept ?? shown({ cost, estimate });
      const body = showing instanceof Promise ? await showing : showing;
      this.#noteFirstOutput();
      if (form === "json") {
        const room = this.#room;
        room?.shrink(body.length);
        return { kind: "json", body, cost, room, ...this.#notes() };
      }
      const { accountId } = metered;
      return this.#inRoom(
        piecesOf(await large.run("events", { accountId }, body, operation, form)),
      );
    } catch (error) {
      throw this.#charged(error, cost);
    }
  }

  /** The error of a request that has ended, which needs no room any more. */
  #charged(error: unknown, cost: bigint | undefined): unknown {
    this.#room?.[Symbol.dispose]();
    return charged(error, cost);
  }

  #events(answer: StreamAnswer): AsyncIterable<Uint8Array> {
    const { request, metered, stop, isKept } = this.#paid;
    const { clock, events, large } = this.#context;
    return new EventRun(answer, {
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
  }

  #noteFirstOutput(): void {
    const { clock, events } = this.#context;
    events.firstOutput(this.#paid.request.operation, clock.steady() - this.#startedAt);
  }

  #newSilence(): Silence {
    const { spec } = this.#paid.request.model;
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

/** Is thinking dropped at an upstream of Messages that was made behind another beginning? */
export function dropsBlocks({ spec }: PreparedRequest["model"]): boolean {
  return spec.case !== "chat" || spec.value.blockBinding !== BlockBinding.OFF;
}

function failedReason(failure: Reason | undefined): Reason {
  return failure ?? ErrorReason.MODEL_REQUEST_FAILED;
}

function failedAs(operation: TextOperation, failure: Reason | undefined): RefusalError {
  const reason = failedReason(failure);
  const isTooLong = reason === ErrorReason.CONTEXT_LENGTH_EXCEEDED;
  return new RefusalError(reason, isTooLong ? { param: inputParamOf(operation) } : {});
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
