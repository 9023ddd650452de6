import { ErrorReason, type Reason } from "#kit/base/errors.ts";
import { type Pushed, pushed, pushTo, type Sink } from "#kit/stream/push-stream.ts";
import type { Clock } from "#kit/time/clock.ts";
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
import { lastFramesShown, withShownCost } from "../metering/shown-charge.ts";
import { lastFramesWithUsage } from "../metering/shown-usage.ts";
import type { Finished, Metered } from "../paid/paid-request.ts";
import type { PreparedRequest } from "../request/prepared.ts";
import type { KeptAnswer } from "../store/store.ts";
import { finishReasonOf } from "./answer-facts.ts";
import { failedEvent } from "./failed-event.ts";
import { type Collector, createCollector, keepable } from "./replay.ts";
import { stopped, stopReasonOf } from "./stop-reason.ts";

/** What a run belongs to. */
export interface EventRunOptions {
  request: Pick<PreparedRequest, "operation" | "hosted" | "bounds" | "maxOutputTokens">;
  metered: Metered;
  stop: AbortController;
  /** Closes the connection to upstream. */
  closeUpstream(): void;
  /** The answer is kept for an idempotency key. */
  isKept: boolean;
  /** Kept with it. */
  ignored: readonly string[];
  /** A chat stream ends with a usage chunk. */
  withUsage: boolean;
  onFirstOutput(): void;
  /** Begun at dispatch. */
  silence: Silence;
  clock: Clock;
  events: TextEvents;
  large: Pick<LargeAnswers, "run">;
}

/**
 * Runs a stream: its bytes are pushed to one reader, what is ready together in one piece. The terminal event is held back until
 * the hold is settled. A run that is stopped is closed at once, whether or not its reader takes anything; only where its caller
 * left and nothing but usage is awaited, upstream is read on for a moment.
 */
export function createEventRun(answer: StreamAnswer, options: EventRunOptions): Pushed<Uint8Array> {
  const { request, metered, stop, events, closeUpstream, large, silence } = options;
  const { operation } = request;
  let reader: Sink<Uint8Array> = noReader;
  /** The reader takes more. */
  let hasRoom = false;
  const seen = createNotes(options);
  metered.unseenInput = () => unseenInput(answer.unseen, request);
  metered.upstream = answer.upstream;
  let isOver = false;
  /** What is read after the end: by a caller that held its stream back when it comes for more, or behind a large last event. */
  let farewell: Uint8Array | undefined;
  /** Takes the events while upstream is read on for usage alone. */
  let usageSink: Sink<readonly AnswerEvent[]> | undefined;

  /** Who broke it off: what does while the caller keeps upstream waiting costs what leaving costs. */
  const brokenOff = (kind: "ended" | "failed") => (answer.isHeldBack?.() ? "left" : kind);
  const hostedCallsSeen = () => answer.unseen?.hostedCalls ?? 0;
  const endOf = (kind: Ending | "ended" | "left"): End => {
    const { collector } = seen;
    const isWhole = kind === "completed" || kind === "incomplete";
    const isCut = seen.terminal?.isCut === true;
    return {
      kind,
      finishReason: finishReasonOf(seen.terminal?.frame, kind),
      reported: seen.reported ?? answer.usageSoFar?.(),
      opaque: { values: seen.opaque, upstream: answer.upstream },
      cutAt: isCut ? cutBoundOf(request, metered.bounds) : undefined,
      hasCalls: hostedCallsSeen() > 0,
      ignored: options.ignored,
      unseenTokens: unseenTokens(answer.unseen, kind === "left" ? silence.tokens() : 0),
      unseenInput: unseenInput(answer.unseen, request),
      answer:
        isWhole && collector
          ? (cost, estimate) => keptOf(collector, cost, estimate).catch(notKept)
          : undefined,
    };
  };
  const keptOf = async (
    collector: Collector,
    cost: bigint,
    estimate: ChargedTokens | undefined,
  ): Promise<KeptAnswer> => {
    const kept = await collector.answer(seen.reported, estimate);
    return keepable(kept && (await withShownCost(operation, kept, { cost }, large, metered)));
  };
  /** Its caller has had it: what it costs, and that it was given, must stand. */
  const notKept = (error: unknown): KeptAnswer => {
    events.trouble("an answer could not be kept", metered.requestId, error);
    return "not_kept";
  };
  const finish = (kind: Ending | "ended") => {
    silence.over();
    return metered.finish(endOf(kind === "failed" || kind === "ended" ? brokenOff(kind) : kind));
  };
  /** Reads for usage as long as no further output comes; gives what brought some. Never rejects. */
  const readOn = async (): Promise<readonly AnswerEvent[] | undefined> => {
    const over = new AbortController();
    options.clock.sleep(usageWaitMs, over.signal).then(closeUpstream, () => {});
    const isOutputDone = () => answer.isOutputDone?.() === true;
    const isAwaited = () => !seen.reported && !seen.terminal && isOutputDone();
    const further = await new Promise<readonly AnswerEvent[] | undefined>((resolve) => {
      const push = (batch: readonly AnswerEvent[]) => {
        const isUsage = seen.noteUsage(batch);
        if (isUsage && isAwaited()) return true;
        resolve(isUsage && isOutputDone() ? undefined : batch);
        return false;
      };
      // It broke, or took too long: what was counted counts.
      const giveUp = () => resolve(undefined);
      usageSink = { push, end: giveUp, fail: giveUp };
      if (isAwaited()) upstream.resume();
      else giveUp();
    });
    over.abort("over");
    return further;
  };
  const noteAll = (events: readonly AnswerEvent[]) => {
    for (const event of events) seen.note(event);
  };
  const leave = async (): Promise<End> => {
    silence.over();
    if (answer.isOutputDone?.()) {
      const isHeldBack = answer.isHeldBack?.() === true;
      const further = await readOn();
      // It was made while the caller took nothing, and so is what waits behind it.
      if (further && isHeldBack) {
        noteAll(further);
        await answer.readArrived?.(noteAll);
      }
    } else if (answer.readArrived) await answer.readArrived(noteAll);
    upstream.leave()?.catch(() => {});
    closeUpstream();
    if (hasRoom) reader.end();
    return endOf("left");
  };
  const breakOff = async (reason: Reason): Promise<Uint8Array> => {
    isOver = true;
    return failedFrames(reason, await finish("failed"));
  };
  const failedFrames = (reason: Reason, finished: Partial<Finished> = {}): Uint8Array => {
    const failed = failedEvent(operation, reason, seen.first, seen.count);
    if (operation === "chat") return failed;
    return joinFrames([...lastFramesWithUsage(failed, operation, finished, false), doneFrame]);
  };
  /** Another account waits for the place that nothing is taken from: that is leaving. */
  const endHeldBack = () => {
    if (isOver || stop.signal.aborted) return;
    farewell = failedFrames(ErrorReason.SERVICE_UNAVAILABLE);
    stop.abort(stopped("left"));
  };
  const last = async ({ frame, ending, isByUs }: TerminalEvent): Promise<Uint8Array> => {
    isOver = true;
    const finished = await finish(isByUs ? "ended" : ending);
    upstream.leave()?.catch(() => {});
    if (!finished.isOurs) return breakOff(ErrorReason.SERVICE_UNAVAILABLE);
    // A broken chat stream must not look complete.
    if (operation === "chat" && ending === "failed") return frame;
    const charge = { ...finished, inChunk: options.withUsage };
    const shown = await lastFramesShown(operation, frame, charge, large, metered);
    if (frame.length <= largeAnswerBytes) return joinFrames([...shown, doneFrame]);
    // Joining them would copy it.
    farewell = doneFrame;
    return joinFrames(shown);
  };
  const onStop = () => {
    if (isOver) return;
    if (stopReasonOf(stop.signal) === "left") {
      isOver = true;
      void metered.finish(leave());
    } else {
      // Its reader may never come for the terminal event that is here.
      const { terminal } = seen;
      void finish(terminal && !terminal.isByUs ? terminal.ending : "ended");
      closeUpstream();
    }
  };
  /** The last bytes are on their way; the reader has room for them. */
  const conclude = (last: Promise<Uint8Array>) => {
    last.then(
      (bytes) => {
        hasRoom = reader.push(bytes);
        if (hasRoom) sayFarewell();
      },
      (error) => reader.fail(error),
    );
  };
  const sayFarewell = () => {
    const bytes = farewell;
    farewell = undefined;
    hasRoom = !bytes || reader.push(bytes);
    if (hasRoom) reader.end();
  };
  const broken = (error: unknown) => {
    const reason = stopReasonOf(stop.signal);
    if (isOver || reason === "left") return;
    if (!reason) events.trouble("a stream broke off", metered.requestId, error);
    const { SERVICE_UNAVAILABLE, MODEL_REQUEST_FAILED } = ErrorReason;
    conclude(breakOff(reason ? SERVICE_UNAVAILABLE : MODEL_REQUEST_FAILED));
  };
  /** The reader has room: may upstream be read on? Else what ends the stream is on its way. */
  const goOn = (): boolean => {
    answer.place?.used();
    if (seen.terminal) {
      conclude(last(seen.terminal));
      return false;
    }
    return true;
  };
  const upstream = pushTo(answer.batches, {
    push(batch) {
      if (usageSink) return usageSink.push(batch);
      if (isOver) return false;
      try {
        for (const event of batch) seen.note(event);
      } catch (error) {
        upstream.leave()?.catch(() => {});
        closeUpstream();
        broken(error);
        return false;
      }
      // Upstream has nothing more to do for it.
      if (seen.terminal) answer.place?.[Symbol.dispose]();
      const frames = readyFrames(batch);
      if (frames && frames.length > 0) hasRoom = reader.push(frames);
      if (isOver) return false;
      if (hasRoom) return goOn();
      if (seen.terminal || stop.signal.aborted) return false;
      silence.held();
      answer.place?.heldBack(endHeldBack);
      return false;
    },
    end() {
      if (usageSink) usageSink.end();
      else if (!isOver) conclude(breakOff(ErrorReason.MODEL_REQUEST_FAILED));
    },
    fail(error) {
      if (usageSink) usageSink.fail(error);
      else broken(error);
    },
  });
  stop.signal.addEventListener("abort", onStop, { once: true });
  if (stop.signal.aborted) onStop();

  return pushed((sink) => {
    reader = sink;
    return {
      resume() {
        if (hasRoom) return;
        hasRoom = true;
        silence.waits();
        if (isOver) sayFarewell();
        else if (goOn()) upstream.resume();
      },
      leave() {
        reader = noReader;
        // Nothing is wanted of upstream any more, so its end has no reader.
        if (stop.signal.aborted && !isOver) upstream.leave()?.catch(() => {});
        return undefined;
      },
    };
  });
}

/** Before there is a reader, and when it has left. */
const noReader: Sink<unknown> = { push: () => false, end() {}, fail() {} };

/** The frames of the events before the terminal one; undefined where there are none. */
function readyFrames(events: readonly AnswerEvent[]): Uint8Array | undefined {
  const last = events.at(-1);
  const ready = last?.ending === undefined ? events : events.slice(0, -1);
  const [first] = ready;
  if (!first) return undefined;
  return ready.length === 1 ? first.frame : joinFrames(ready.map((event) => event.frame));
}

type TerminalEvent = AnswerEvent & { ending: Ending };

/** What went past so far. */
interface Notes {
  note(event: AnswerEvent): void;
  /** Notes what events that no caller gets report; false where they are further output. */
  noteUsage(events: readonly AnswerEvent[]): boolean;
  /** First frame: it has the response object. */
  first: Uint8Array | undefined;
  /** Events before the terminal one. */
  count: number;
  reported: ReportedUsage | undefined;
  opaque: string[];
  terminal: TerminalEvent | undefined;
  collector: Collector | undefined;
}

function createNotes(options: EventRunOptions): Notes {
  const { request, metered, isKept, onFirstOutput, large, silence } = options;
  let hasText = false;
  const notes: Notes = {
    first: undefined,
    count: 0,
    reported: undefined,
    opaque: [],
    terminal: undefined,
    collector: isKept ? createCollector(request.operation, metered.accountId, large) : undefined,
    note(event) {
      notes.first ??= event.frame;
      if (event.text !== "") {
        if (!hasText) onFirstOutput();
        hasText = true;
        silence.spoke(event.text.length);
        metered.saw(event.text);
      }
      if (event.usage) notes.reported = event.usage;
      if (event.opaque) notes.opaque.push(...event.opaque);
      notes.collector?.add(event);
      if (event.ending) notes.terminal = { ...event, ending: event.ending };
      else notes.count++;
    },
    noteUsage(events) {
      for (const { text, usage } of events) {
        if (usage) notes.reported = usage;
        else if (text !== "") return false;
      }
      return true;
    },
  };
  return notes;
}
