import { ErrorReason, type Reason } from "#kit/errors.ts";
import type { TextEvents } from "./events.ts";
import { failedEvent } from "./failed-event.ts";
import type { Metered } from "./metered.ts";
import { type Collector, createCollector, keepable } from "./replay/collect.ts";
import { doneFrame, joinFrames } from "./replay/frames.ts";
import { stopReasonOf } from "./stopped.ts";
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
  /** The answer is kept for an idempotency key. */
  isKept: boolean;
  onFirstOutput(): void;
  events: TextEvents;
}

/**
 * Runs a stream: each call pulls what is ready together, as bytes. The terminal event is held back until the hold is
 * settled. A run that is stopped is closed at once, whether or not anybody pulls. Never rejects.
 */
export function createEventRun(
  answer: StreamAnswer,
  options: EventRunOptions,
): () => Promise<Uint8Array | undefined> {
  const { operation, metered, stop, events } = options;
  const batches = answer.batches[Symbol.asyncIterator]();
  const seen = createNotes(options);
  let isOver = false;

  const finish = (kind: Ending | "left") => {
    const { collector } = seen;
    const isWhole = kind === "completed" || kind === "incomplete";
    return metered.finish({
      kind,
      reported: seen.reported,
      opaque: { values: seen.opaque, upstream: answer.upstream },
      answer: isWhole && collector ? keepable(collector.answer(seen.reported)) : undefined,
    });
  };
  const breakOff = async (reason: Reason): Promise<Uint8Array> => {
    isOver = true;
    await finish("failed");
    const failed = failedEvent(operation, reason, seen.first, seen.count);
    return operation === "chat" ? failed : joinFrames([failed, doneFrame]);
  };
  const last = async ({ frame, ending }: TerminalEvent): Promise<Uint8Array> => {
    isOver = true;
    const isOurs = await finish(ending);
    void batches.return?.();
    if (!isOurs) return breakOff(ErrorReason.SERVICE_UNAVAILABLE);
    // A broken chat stream must not look complete.
    return operation === "chat" && ending === "failed" ? frame : joinFrames([frame, doneFrame]);
  };
  const onStop = () => {
    if (isOver) return;
    if (stopReasonOf(stop.signal) === "left") {
      isOver = true;
      void finish("left");
      void batches.return?.();
    } else if (!seen.terminal) {
      void finish("failed");
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
    return seen.terminal ? last(seen.terminal) : batches.next().then(took, broken);
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
  };
  return notes;
}
