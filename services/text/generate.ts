import type { Clock } from "#kit/clock.ts";
import { ErrorReason, type Reason, refuse } from "#kit/errors.ts";
import { createEventRun } from "./event-run.ts";
import type { TextEvents } from "./events.ts";
import type { AnswerNotes } from "./joins.ts";
import { usageWaitMs } from "./limits.ts";
import type { Metered } from "./metered.ts";
import type { TokenBounds } from "./pricing.ts";
import { keepable } from "./replay/collect.ts";
import { eventsOfAnswer } from "./replay/events.ts";
import type { PreparedRequest } from "./request/prepare.ts";
import { bodyWithUsage } from "./shown-usage.ts";
import { stopped, stopReasonOf } from "./stopped.ts";
import { counterFor, countOrGuess, type TokenCounter } from "./tokens/count.ts";
import { unseenTokens } from "./unseen-time.ts";
import { failureOf } from "./upstream/failure.ts";
import type {
  JsonAnswer,
  ReportedUsage,
  StreamAnswer,
  TextOperation,
  TextUpstreams,
} from "./upstream/port.ts";

/** What sending needs. */
export interface GenerateContext {
  clock: Clock;
  upstreams: TextUpstreams;
  events: TextEvents;
  counter: TokenCounter;
}

/** An answer that has begun. */
export type Begun =
  | { kind: "json"; body: Uint8Array }
  /** Bytes of whole events, as they are ready; undefined after the last. Pulled by one reader at a time; never rejects. */
  | { kind: "events"; pull(): Promise<Uint8Array | undefined> };

/**
 * Sends a paid request, and sees it through to its settlement whatever happens: the answer's end, a broken upstream, the
 * caller's leaving (`stop` aborts with `Stopped`). Refuses with what upstream's failure means, before any output.
 */
export async function generate(
  request: PreparedRequest,
  callId: string,
  metered: Metered,
  stop: AbortController,
  isKept: boolean,
  context: GenerateContext,
): Promise<Begun & Pick<AnswerNotes, "ignored">> {
  const startedAt = context.clock.steady();
  metered.onLost = () => stop.abort(stopped("lost"));
  let answer: JsonAnswer | StreamAnswer;
  let sentAt: number | undefined;
  const ignored: string[] = [];
  let isAnswering = false;
  const onSent = () => {
    sentAt = context.clock.steady();
  };
  const onAnswering = () => {
    isAnswering = true;
  };
  const { clock } = context;
  const sinceSent = () => (sentAt === undefined ? 0 : clock.steady() - sentAt);
  const { spec } = request.model;
  const mayThink = spec.case === "chat" && spec.value.reasoningEfforts.length > 0;
  const isUnseen = mayThink || request.form === "json";
  const counter = counterFor(metered.accountId, context.counter);
  const upstream = new AbortController();
  const closeUpstream = () => upstream.abort(stop.signal.reason);
  const onStop = () => {
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
      stream: request.form !== "json",
      maxOutputTokens: toldBound(request, metered.bounds),
      outputBound: {
        tokens: metered.bounds.output,
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
      passParameters: request.passParameters,
      onIgnored: (names) => ignored.push(...names),
      onAnswering,
      signal: upstream.signal,
    });
  } catch (error) {
    const reason = stopReasonOf(stop.signal);
    const left = sentAt === undefined ? "unsent" : "left";
    const unseenMs = isUnseen ? sinceSent() : 0;
    await metered.finish({
      kind: reason === "left" ? left : "failed",
      reported: usageOfRefusal(error),
      unseenTokens: unseenTokens(undefined, unseenMs),
    });
    throw reason ? stop.signal.reason : error;
  } finally {
    stop.signal.removeEventListener("abort", onStop);
  }
  const { operation, form } = request;
  const onFirstOutput = () => {
    context.events.firstOutput(operation, context.clock.steady() - startedAt);
  };
  if (answer.kind === "json") {
    const body = await finishJson(operation, answer, metered, { isKept, ignored });
    onFirstOutput();
    if (form === "json") return { kind: "json", body, ignored };
    return { ...wholeStream(eventsOfAnswer(operation, form, body)), ignored };
  }
  const { events } = context;
  const run = createEventRun(answer, {
    operation,
    metered,
    stop,
    closeUpstream,
    isKept,
    ignored,
    withUsage: form === "events+usage",
    onFirstOutput,
    mayThink,
    firstWaitMs: sinceSent(),
    clock,
    events,
  });
  return { kind: "events", pull: run, ignored };
}

/** What upstream reported in an answer that is none. */
function usageOfRefusal(error: unknown): ReportedUsage | undefined {
  return error instanceof Error ? failureOf(error.cause)?.usage : undefined;
}

/** The caller's bound, or one that fell below the model's maximum because no more could be paid for. */
function toldBound(
  { maxOutputTokens, bounds }: PreparedRequest,
  held: TokenBounds,
): number | undefined {
  return held.output < bounds.output ? held.output : maxOutputTokens;
}

async function finishJson(
  operation: TextOperation,
  answer: JsonAnswer,
  metered: Metered,
  { isKept, ignored }: { isKept: boolean; ignored: readonly string[] },
): Promise<Uint8Array> {
  const { ending, failure, usage, opaque, upstream, isCut } = answer;
  metered.saw(answer.outputText);
  let { body } = answer;
  const { isOurs } = await metered.finish({
    kind: ending,
    reported: usage,
    isCut,
    unseenTokens: unseenTokens(answer.unseen, 0),
    opaque: { values: opaque, upstream },
    ignored,
    answer(counted) {
      if (ending === "failed") return undefined;
      body = bodyWithUsage(operation, body, counted);
      return isKept ? keepable(body) : undefined;
    },
  });
  // Another process has closed it, and charged for what was seen.
  if (!isOurs) refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: { retry_after_ms: "1000" } });
  if (ending === "failed") refuseFailed(operation, failure ?? ErrorReason.MODEL_REQUEST_FAILED);
  return body;
}

function refuseFailed(operation: TextOperation, reason: Reason): never {
  const isTooLong = reason === ErrorReason.CONTEXT_LENGTH_EXCEEDED;
  refuse(reason, isTooLong ? { param: operation === "chat" ? "messages" : "input" } : {});
}

/** An answer that came whole, for a caller who asked for a stream. */
export function wholeStream(bytes: Uint8Array): Begun {
  let rest: Uint8Array | undefined = bytes;
  return {
    kind: "events",
    pull: async () => {
      const piece = rest;
      rest = undefined;
      return piece;
    },
  };
}
