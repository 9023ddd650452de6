import type { Clock } from "#kit/clock.ts";
import { ErrorReason, type Reason } from "#kit/errors.ts";
import type { End } from "./closing.ts";
import type { TextEvents } from "./events.ts";
import { failedEvent } from "./failed-event.ts";
import { usageWaitMs } from "./limits.ts";
import type { Metered } from "./metered.ts";
import { type Collector, createCollector, keepable } from "./replay/collect.ts";
import { doneFrame, joinFrames } from "./replay/frames.ts";
import { lastFramesWithUsage } from "./shown-usage.ts";
import { stopReasonOf } from "./stopped.ts";
import { createUnseenTime, unseenTokens } from "./unseen-time.ts";
import type {
  AnswerEvent,
  Ending,
  ReportedUsage,
  StreamAnswer,
  TextOperation,
} from "./upstream/port.ts";

/** What a run belongs to. */
export interface EventRunOptions {
  operation: TextOperation;
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
  /** The model may think unseen. */
  mayThink: boolean;
  /** Milliseconds from dispatch to the first events. */
  firstWaitMs: number;
  clock: Clock;
  events: TextEvents;
}

/**
 * Runs a stream: each call pulls what is ready together, as bytes. The terminal event is held back until the hold is
 * settled. A run that is stopped is closed at once, whether or not anybody pulls; only where its caller left and nothing but
 * usage is awaited, upstream is read on for a moment. Never rejects.
 */
export function createEventRun(
  answer: StreamAnswer,
  options: EventRunOptions,
): () => Promise<Uint8Array | undefined> {
  const { operation, metered, stop, events, closeUpstream } = options;
  const batches = answer.batches[Symbol.asyncIterator]();
  const seen = createNotes(options);
  const unseen = createUnseenTime(answer, options);
  let isOver = false;
  /** The batch that is waited for. */
  let coming: Promise<IteratorResult<readonly AnswerEvent[]>> | undefined;

  const endOf = (kind: Ending | "left"): End => {
    const { collector } = seen;
    const isWhole = kind === "completed" || kind === "incomplete";
    const isKnownWhole = isWhole && !answer.isStopped?.();
    return {
      // What breaks off while the caller keeps upstream waiting costs what leaving costs.
      kind: kind === "failed" && answer.isHeldBack?.() ? "left" : kind,
      reported: seen.reported,
      opaque: { values: seen.opaque, upstream: answer.upstream },
      isCut: seen.terminal?.isCut,
      ignored: options.ignored,
      unseenTokens: unseenTokens(answer.unseen, isKnownWhole ? 0 : unseen.ms()),
      answer:
        isWhole && collector
          ? (estimate) => keepable(collector.answer(seen.reported, estimate))
          : undefined,
    };
  };
  const finish = (kind: Ending) => metered.finish(endOf(kind));
  /** Reads for usage as long as no further output comes. Never rejects. */
  const readOn = async (): Promise<void> => {
    const over = new AbortController();
    options.clock.sleep(usageWaitMs, over.signal).then(closeUpstream, () => {});
    try {
      while (!seen.reported && !seen.terminal && answer.isOutputDone?.()) {
        const step = await (coming ?? batches.next());
        coming = undefined;
        if (step.done || !seen.noteUsage(step.value)) break;
      }
    } catch {
      // It broke, or took too long: what was counted counts.
    } finally {
      over.abort("over");
    }
  };
  const leave = async (): Promise<End> => {
    unseen.came();
    if (answer.isOutputDone?.()) await readOn();
    void batches.return?.();
    closeUpstream();
    return endOf("left");
  };
  const breakOff = async (reason: Reason): Promise<Uint8Array> => {
    isOver = true;
    await finish("failed");
    const failed = failedEvent(operation, reason, seen.first, seen.count);
    return operation === "chat" ? failed : joinFrames([failed, doneFrame]);
  };
  const last = async ({ frame, ending }: TerminalEvent): Promise<Uint8Array> => {
    isOver = true;
    const { isOurs, estimate } = await finish(ending);
    void batches.return?.();
    if (!isOurs) return breakOff(ErrorReason.SERVICE_UNAVAILABLE);
    // A broken chat stream must not look complete.
    if (operation === "chat" && ending === "failed") return frame;
    const shown = lastFramesWithUsage(operation, frame, estimate, options.withUsage);
    return joinFrames([...shown, doneFrame]);
  };
  const onStop = () => {
    if (isOver) return;
    if (stopReasonOf(stop.signal) === "left") {
      isOver = true;
      void metered.finish(leave());
    } else {
      if (!seen.terminal) void finish("failed");
      closeUpstream();
    }
  };
  stop.signal.addEventListener("abort", onStop, { once: true });
  if (stop.signal.aborted) onStop();

  const broken = (error: unknown) => {
    const reason = stopReasonOf(stop.signal);
    if (isOver || reason === "left") return undefined;
    if (reason) return breakOff(ErrorReason.SERVICE_UNAVAILABLE);
    events.trouble("a stream broke off", metered.requestId, error);
    return breakOff(ErrorReason.MODEL_REQUEST_FAILED);
  };
  const took = (step: IteratorResult<readonly AnswerEvent[]>) => {
    if (isOver) return undefined;
    coming = undefined;
    unseen.came();
    if (step.done) return breakOff(ErrorReason.MODEL_REQUEST_FAILED);
    try {
      for (const event of step.value) seen.note(event);
      return readyFrames(step.value) ?? pull();
    } catch (error) {
      return broken(error);
    }
  };
  // One promise for each delta: an async function would take three.
  const pull = (): Promise<Uint8Array | undefined> => {
    if (isOver) return Promise.resolve(undefined);
    if (seen.terminal) return last(seen.terminal);
    unseen.waits();
    coming = batches.next();
    return coming.then(took, broken);
  };
  return pull;
}

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
  /** Notes what events that nobody gets report; false where they are further output. */
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

function createNotes({ operation, metered, isKept, onFirstOutput }: EventRunOptions): Notes {
  let hasOutput = false;
  const notes: Notes = {
    first: undefined,
    count: 0,
    reported: undefined,
    opaque: [],
    terminal: undefined,
    collector: isKept ? createCollector(operation) : undefined,
    note(event) {
      notes.first ??= event.frame;
      if (event.text !== "") {
        if (!hasOutput) onFirstOutput();
        hasOutput = true;
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
