// Runs one stream from its first event to its settlement. It holds the terminal event back until the charge is decided, so that
// the caller gets the cost with it. `sending.ts` makes the run, and `shared-events.ts` hands its bytes to callers.

import { after, promiseOf } from "#kit/base/awaitable.ts";
import { ErrorReason, type Reason } from "#kit/base/errors.ts";
import type { Stop } from "#kit/base/stop.ts";
import { type Flow, Pushed, pushTo, type Sink } from "#kit/stream/push-stream.ts";
import type { Clock } from "#kit/time/clock.ts";
import { finishReasonOf } from "../../upstreams/text/finish-reason.ts";
import { largeAnswerBytes } from "../../upstreams/text/limits.ts";
import type {
  AnswerEvent,
  Ending,
  ReportedUsage,
  StreamAnswer,
} from "../../upstreams/text/port.ts";
import type { TextEvents } from "../base/events.ts";
import { doneFrame, joinFrames } from "../base/frames.ts";
import { usageWaitMs } from "../base/limits.ts";
import type { LargeAnswers } from "../large/index.ts";
import type { End } from "../metering/charge.ts";
import { type Silence, unseenInput, unseenTokens } from "../metering/hidden-time.ts";
import { type ChargedTokens, cutBoundOf } from "../metering/pricing.ts";
import { lastFramesShown, lastFramesWithUsage, withShownCost } from "../metering/shown-usage.ts";
import type { Metered } from "../paid/paid-request.ts";
import type { Finished } from "../paid/settling.ts";
import type { PreparedRequest } from "../request/prepared.ts";
import type { KeptAnswer } from "../store/store.ts";
import { failureFor, failureOfEnd } from "./answer-facts.ts";
import { failedEvent } from "./failed-event.ts";
import { type Collector, createCollector, keepable } from "./replay.ts";
import { stopped, stopReasonOf } from "./stop-reason.ts";

/** The request of a run, and the dependencies. */
export interface EventRunOptions {
  request: Pick<PreparedRequest, "operation" | "hosted" | "bounds" | "maxOutputTokens">;
  metered: Metered;
  stop: Stop;
  /** Closes the connection to the upstream. */
  closeUpstream(): void;
  /** True where the answer is kept for an idempotency key. */
  isKept: boolean;
  /** Properties without effect, which are kept with the answer. */
  ignored: readonly string[];
  /** True where a chat stream ends with a usage chunk. */
  withUsage: boolean;
  onFirstOutput(): void;
  /** It was begun at dispatch. */
  silence: Silence;
  clock: Clock;
  events: TextEvents;
  large: Pick<LargeAnswers, "run">;
}

/**
 * Runs a stream. Its bytes are pushed to one reader, and those that are ready together are one piece. The terminal event is held back
 * until the hold is settled. A run that is stopped is closed at once, whether or not its reader takes anything. Only where its caller
 * left and nothing except usage is awaited, the upstream is read on for a moment.
 */
export class EventRun extends Pushed<Uint8Array> implements Flow {
  readonly #answer: StreamAnswer;
  readonly #options: EventRunOptions;
  readonly #collector: Collector | undefined;
  readonly #upstream: Flow;
  #reader: Sink<Uint8Array> = noReader;
  /** True where the reader takes more. */
  #hasRoom = false;
  #isOver = false;
  /** The first frame, which has the response object. */
  #first: Uint8Array | undefined;
  /** Number of events before the terminal one. */
  #count = 0;
  #hasText = false;
  #reported: ReportedUsage | undefined;
  readonly #opaque: string[] = [];
  #terminal: TerminalEvent | undefined;
  /** Bytes that are sent after the end: to a caller that held its stream back, when it takes more, or behind a large last event. */
  #farewell: Uint8Array | undefined;
  /** Takes the events while the upstream is read on for usage alone. */
  #usageSink: Sink<readonly AnswerEvent[]> | undefined;
  /** Ends a run whose reader takes nothing, when another account waits for its place. That counts as leaving. */
  readonly #endHeldBack = () => {
    const { stop } = this.#options;
    if (this.#isOver || stop.aborted) return;
    this.#farewell = this.#failedFrames(ErrorReason.SERVICE_UNAVAILABLE);
    stop.abort(stopped("left"));
  };

  constructor(answer: StreamAnswer, options: EventRunOptions) {
    super();
    const { isKept, large, metered, request, stop } = options;
    this.#answer = answer;
    this.#options = options;
    if (isKept) this.#collector = createCollector(request.operation, metered.accountId, large);
    metered.unseenInput = () => unseenInput(answer.unseen, request);
    metered.told.upstream = answer.upstream;
    this.#upstream = pushTo(answer.batches, {
      push: (batch) => (this.#usageSink ? this.#usageSink.push(batch) : this.#push(batch)),
      end: () => this.#ended(),
      fail: (error) => (this.#usageSink ? this.#usageSink.fail(error) : this.#broken(error)),
    });
    stop.addEventListener("abort", () => this.#stopped());
    if (stop.aborted) this.#stopped();
  }

  pushTo(sink: Sink<Uint8Array>): Flow {
    this.#reader = sink;
    return this;
  }

  resume(): void {
    if (this.#hasRoom) return;
    this.#hasRoom = true;
    this.#options.silence.waits();
    if (this.#isOver) this.#sayFarewell();
    else if (this.#mayReadOn()) this.#upstream.resume();
  }

  leave(): undefined {
    this.#reader = noReader;
    // Nothing more is needed from the upstream, so its end has no reader.
    if (this.#options.stop.aborted && !this.#isOver) this.#leaveUpstream();
    return undefined;
  }

  /** Passes events on unchanged. */
  #push(batch: readonly AnswerEvent[]): boolean {
    if (this.#isOver) return false;
    const { closeUpstream, silence, stop } = this.#options;
    const { place } = this.#answer;
    try {
      for (const event of batch) this.#note(event);
    } catch (error) {
      this.#leaveUpstream();
      closeUpstream();
      this.#broken(error);
      return false;
    }
    // The upstream has finished its work for this request.
    if (this.#terminal) place?.[Symbol.dispose]();
    const frames = readyFrames(batch);
    if (frames && frames.length > 0) this.#hasRoom = this.#reader.push(frames);
    if (this.#isOver) return false;
    if (this.#hasRoom) return this.#mayReadOn();
    if (this.#terminal || stop.aborted) return false;
    silence.held();
    place?.heldBack(this.#endHeldBack);
    return false;
  }

  /** The reader has room. May the upstream be read on? Otherwise the bytes that end the stream are on their way. */
  #mayReadOn(): boolean {
    this.#answer.place?.used();
    if (this.#terminal) this.#conclude(this.#last(this.#terminal));
    return !this.#terminal;
  }

  /** The upstream ended without a terminal event. */
  #ended(): void {
    if (this.#usageSink) this.#usageSink.end();
    else if (!this.#isOver) this.#conclude(this.#breakOff(ErrorReason.MODEL_REQUEST_FAILED));
  }

  #broken(error: unknown): void {
    const { events, metered, stop } = this.#options;
    const reason = stopReasonOf(stop);
    if (this.#isOver || reason === "left") return;
    if (!reason) events.trouble("a stream broke off", metered.requestId, error);
    const { SERVICE_UNAVAILABLE, MODEL_REQUEST_FAILED } = ErrorReason;
    this.#conclude(this.#breakOff(reason ? SERVICE_UNAVAILABLE : MODEL_REQUEST_FAILED));
  }

  #stopped(): void {
    if (this.#isOver) return;
    const { closeUpstream, metered, stop } = this.#options;
    if (stopReasonOf(stop) === "left") {
      this.#isOver = true;
      void metered.finish(this.#left());
    } else {
      // The terminal event is here, but its reader may never take it.
      const terminal = this.#terminal;
      void this.#finish(terminal && !terminal.isByUs ? terminal.ending : "ended");
      closeUpstream();
    }
  }

  /** Sends the last bytes when they are ready. The reader has room for them. */
  #conclude(last: Promise<Uint8Array>): void {
    last.then(
      (bytes) => {
        this.#hasRoom = this.#reader.push(bytes);
        if (this.#hasRoom) this.#sayFarewell();
      },
      (error) => this.#reader.fail(error),
    );
  }

  #sayFarewell(): void {
    const bytes = this.#farewell;
    this.#farewell = undefined;
    this.#hasRoom = !bytes || this.#reader.push(bytes);
    if (this.#hasRoom) this.#reader.end();
  }

  /** The terminal event, once the request is settled. */
  #last({ frame, ending, isByUs }: TerminalEvent): Promise<Uint8Array> {
    this.#isOver = true;
    const { large, metered, request, withUsage } = this.#options;
    const { operation } = request;
    const ended = promiseOf(() => this.#finish(isByUs ? "ended" : ending));
    return ended.then((finished) => {
      this.#leaveUpstream();
      if (!finished.isOurs) return this.#breakOff(ErrorReason.SERVICE_UNAVAILABLE);
      // A broken stream of chat or messages must not look complete.
      if (operation !== "responses" && ending === "failed") return frame;
      const charge = { ...finished, inChunk: withUsage };
      return after(lastFramesShown(operation, frame, charge, large, metered), (shown) => {
        const done = doneFrame(operation);
        if (frame.length <= largeAnswerBytes) return joinFrames([...shown, done]);
        // Joining the frames would copy a large one.
        this.#farewell = done;
        return joinFrames(shown);
      });
    });
  }

  async #breakOff(reason: Reason): Promise<Uint8Array> {
    this.#isOver = true;
    return this.#failedFrames(reason, await this.#finish("failed", failureFor(reason)));
  }

  #failedFrames(reason: Reason, finished: Partial<Finished> = {}): Uint8Array {
    const { operation } = this.#options.request;
    const failed = failedEvent(operation, reason, this.#first, this.#count);
    if (operation !== "responses") return failed;
    const shown = lastFramesWithUsage(failed, operation, finished, false);
    return joinFrames([...shown, doneFrame(operation)]);
  }

  #finish(
    kind: Ending | "ended",
    failure = failureOfEnd(kind, this.#terminal?.frame),
  ): Promise<Finished> {
    this.#options.silence.over();
    // A break that the caller caused, because it kept the upstream waiting, is charged like leaving.
    const isBreak = kind === "failed" || kind === "ended";
    const isCallers = isBreak && this.#answer.isHeldBack?.() === true;
    if (isCallers) return this.#options.metered.finish(this.#endOf("left"));
    return this.#options.metered.finish({ ...this.#endOf(kind), failure });
  }

  #endOf(kind: Ending | "ended" | "left"): End {
    const { ignored, metered, request, silence } = this.#options;
    const { unseen, upstream } = this.#answer;
    const collector = this.#collector;
    const terminal = this.#terminal;
    const isWhole = kind === "completed" || kind === "incomplete";
    return {
      kind,
      finishReason: finishReasonOf(terminal?.frame, kind),
      reported: this.#reported ?? this.#answer.usageSoFar?.(),
      opaque: { values: this.#opaque, upstream },
      cutAt: terminal?.isCut ? cutBoundOf(request, metered.bounds) : undefined,
      hasCalls: (unseen?.hostedCalls ?? 0) > 0,
      toolCalls: unseen?.toolCalls,
      ignored,
      unseenTokens: unseenTokens(unseen, kind === "left" ? silence.tokens() : 0),
      unseenInput: unseenInput(unseen, request),
      answer:
        isWhole && collector
          ? (cost, estimate) => this.#kept(collector, cost, estimate)
          : undefined,
    };
  }

  /** The form of the answer that is kept for its idempotency key. Never rejects. */
  async #kept(
    collector: Collector,
    cost: bigint,
    estimate: ChargedTokens | undefined,
  ): Promise<KeptAnswer> {
    const { events, large, metered, request } = this.#options;
    try {
      const kept = await collector.answer(this.#reported, estimate);
      return keepable(
        kept && (await withShownCost(request.operation, kept, { cost }, large, metered)),
      );
    } catch (error) {
      // The caller got the answer. Its cost, and that it was given, must be recorded.
      events.trouble("an answer could not be kept", metered.requestId, error);
      return "not_kept";
    }
  }

  /** The end of a request whose caller left, with usage that has come or comes within a moment. */
  async #left(): Promise<End> {
    const answer = this.#answer;
    const { closeUpstream, silence } = this.#options;
    silence.over();
    if (answer.isOutputDone?.()) {
      const isHeldBack = answer.isHeldBack?.() === true;
      const further = await this.#readOn();
      // This output was made while the caller took nothing, and so was all that waits behind it.
      if (further && isHeldBack) {
        this.#noteAll(further);
        await answer.readArrived?.((events) => this.#noteAll(events));
      }
    } else if (answer.readArrived) await answer.readArrived((events) => this.#noteAll(events));
    this.#leaveUpstream();
    closeUpstream();
    if (this.#hasRoom) this.#reader.end();
    return this.#endOf("left");
  }

  /** Reads for usage as long as no further output comes. Answers the events with further output. Never rejects. */
  async #readOn(): Promise<readonly AnswerEvent[] | undefined> {
    const { clock, closeUpstream } = this.#options;
    const over = new AbortController();
    clock.sleep(usageWaitMs, over.signal).then(closeUpstream, () => {});
    const isOutputDone = () => this.#answer.isOutputDone?.() === true;
    const isAwaited = () => !this.#reported && !this.#terminal && isOutputDone();
    const further = await new Promise<readonly AnswerEvent[] | undefined>((resolve) => {
      const push = (batch: readonly AnswerEvent[]) => {
        const isUsage = this.#noteUsage(batch);
        if (isUsage && isAwaited()) return true;
        resolve(isUsage && isOutputDone() ? undefined : batch);
        return false;
      };
      // The stream broke, or took too long. The count so far stays.
      const giveUp = () => resolve(undefined);
      this.#usageSink = { push, end: giveUp, fail: giveUp };
      if (isAwaited()) this.#upstream.resume();
      else giveUp();
    });
    over.abort("over");
    return further;
  }

  #noteAll(events: readonly AnswerEvent[]): void {
    for (const event of events) this.#note(event);
  }

  #note(event: AnswerEvent): void {
    this.#first ??= event.frame;
    if (event.text !== "") {
      const { metered, onFirstOutput, silence } = this.#options;
      if (!this.#hasText) onFirstOutput();
      this.#hasText = true;
      silence.spoke(event.text.length);
      metered.saw(event.text);
    }
    if (event.usage) this.#reported = event.usage;
    if (event.opaque) this.#opaque.push(...event.opaque);
    this.#collector?.add(event);
    if (event.ending) this.#terminal = { ...event, ending: event.ending };
    else this.#count++;
  }

  /** Notes the usage in events that no caller gets. False where the events are further output. */
  #noteUsage(events: readonly AnswerEvent[]): boolean {
    for (const { text, usage } of events) {
      if (usage) this.#reported = usage;
      else if (text !== "") return false;
    }
    return true;
  }

  #leaveUpstream(): void {
    this.#upstream.leave()?.catch(() => {});
  }
}

/** The reader before there is one, and after it has left. */
const noReader: Sink<unknown> = { push: () => false, end() {}, fail() {} };

/** The frames of the events before the terminal one. Undefined where there are none. */
function readyFrames(events: readonly AnswerEvent[]): Uint8Array | undefined {
  const last = events.at(-1);
  const ready = last?.ending === undefined ? events : events.slice(0, -1);
  const [first] = ready;
  if (!first) return undefined;
  return ready.length === 1 ? first.frame : joinFrames(ready.map((event) => event.frame));
}

type TerminalEvent = AnswerEvent & { ending: Ending };
