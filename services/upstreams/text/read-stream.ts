// Reads an upstream's stream from its bytes to the events for the caller: cuts, parses, counts, withholds and ends it. A
// `StreamReader` translates the events.

import { type Flow, Pushed, type Sink } from "#kit/stream/push-stream.ts";
import type { HttpBody, HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { createSseParser, dataOf, eventOf, type SseEvent } from "#kit/upstream/sse.ts";
import type { UpstreamEvents } from "./events.ts";
import { failureOf, UpstreamFailure } from "./failure.ts";
import type { Counted, OutputGate } from "./judging/output-gate.ts";
import { Withheld } from "./judging/withheld.ts";
import type { LargeParts } from "./large-parts.ts";
import { largeAnswerBytes, stopUsageWaitMs } from "./limits.ts";
import type { AnswerEvent, StreamAnswer, UpstreamRequest } from "./port.ts";
import { readArrived } from "./read-arrived.ts";
import type { CutReason, StreamReader } from "./stream-reader.ts";
import type { EventParser } from "./translation.ts";

/** Everything that reading a stream needs. */
export interface ReadStreamOptions {
  reply: HttpReply;
  reader: StreamReader;
  /** Cuts the bytes into the events that the reader reads. Absent: they are as they came. */
  parser?: EventParser | undefined;
  /** Counts the output, and decides when it is too much. */
  gate: OutputGate;
  /** Takes large parts out of events, and puts them back into the events made of these. */
  parts: LargeParts;
  request: Pick<UpstreamRequest, "operation" | "signal">;
  /** The upstream's name. */
  upstream: string;
  events: Pick<UpstreamEvents, "broke" | "brokeOff">;
  /** Called when the answer was cut at the bound of its output. */
  onCut(): void;
}

/** Resolves when the first events have come. Throws `UpstreamFailure` where none came. */
export function readStream(options: ReadStreamOptions): Promise<StreamAnswer> {
  const { upstream, request, reply, reader } = options;
  const batches = new Batches(options);
  return batches.begin().then(
    () => ({
      kind: "stream",
      batches,
      upstream,
      isHeldBack: () => reply.body.isHeldBack(),
      readArrived: (note) => batches.readArrived(note),
      isOutputDone: () => reader.isOutputDone,
      unseen: reader.unseen,
      usageSoFar: () => reader.usage,
    }),
    (error) => {
      request.signal.throwIfAborted();
      throw failureOf(error) ?? error;
    },
  );
}

type Batch = readonly AnswerEvent[];
/** Reads its input, and appends events to `out`. Answers the reason where nothing more will come. */
type Read<From> = (from: From, out: AnswerEvent[]) => CutReason | undefined;

/** The events of one answer, for one reader at a time. They are pushed in the turn in which their bytes came. */
class Batches extends Pushed<Batch> implements Flow {
  readonly #options: ReadStreamOptions;
  readonly #body: HttpBody;
  readonly #reader: StreamReader;
  readonly #parser: EventParser;
  readonly #gate: OutputGate;
  readonly #parts: LargeParts;
  readonly #chunks: Flow;
  #sink: Sink<Batch> | undefined;
  /** Events that came. Those from index `#at` on are not read yet. */
  #pending: readonly SseEvent[] = [];
  #at = 0;
  /** True where the body ends behind the pending events. */
  #hasEnded = false;
  /** True where the output so far could be more than the bound. It must be counted before more is read. */
  #isUncertain = false;
  /** True where the next event is large. Its large parts must be taken out before it is read. */
  #isLarge = false;
  /** True while output is counted or large parts are taken out. */
  #isBusy = false;
  /** True where no caller gets the events from now on. So they are not counted against the bound. */
  #isUncounted = false;
  /** The events whose large parts were taken out. */
  readonly #lifted = new WeakSet<SseEvent>();
  /** Events that came after the answer was above its bound by the count of genmesh. */
  #withheld: Withheld | undefined;
  /** This many of the pending events were withheld before, and are counted already. */
  #released = 0;
  #isCut = false;
  /** Bytes of the body that have come so far. */
  #bytes = 0;
  #first: Batch | undefined;
  #hasSent = false;
  #isOver = false;
  #hasToldEnd = false;
  /** Runs while the upstream is read on behind a stop sequence. */
  #lastWait: NodeJS.Timeout | undefined;
  readonly #close = () => this.#body.close();
  /** Reads a chunk, or the body's end. It is a field, so that a chunk needs no new function. */
  readonly #read: Read<Buffer | undefined> = (chunk, out) => {
    this.#bytes += chunk?.length ?? 0;
    this.#pending = chunk ? this.#parser.push(chunk) : [this.#parser.end() ?? []].flat();
    this.#at = 0;
    this.#hasEnded = !chunk;
    return this.#readPending(out);
  };
  /** The reason for a cut. Throws before the first event: then the caller can still get an error, or another upstream's answer. */
  readonly #cut: Read<unknown> = (error, out) => {
    this.#options.request.signal.throwIfAborted();
    if (!this.#hasSent && out.length === 0) throw error;
    return cutReasonOf(error, this.#options);
  };

  constructor(options: ReadStreamOptions) {
    super();
    this.#options = options;
    this.#body = options.reply.body;
    this.#reader = options.reader;
    this.#parser = options.parser ?? createSseParser({ maxEventBytes: answerLimits.eventBytes });
    this.#gate = options.gate;
    this.#parts = options.parts;
    this.#chunks = this.#body.chunks.pushTo({
      push: (chunk) => this.#step(this.#read, chunk),
      end: () => void this.#step(this.#read, undefined),
      fail: (cause) => this.#break(cause),
    });
  }

  #break(cause: unknown): void {
    if (!this.#withheld || this.#options.request.signal.aborted) {
      this.#step(this.#cut, cause);
      return;
    }
    // The events so far alone must show whether the withheld ones were within the bound.
    this.#hasEnded = true;
    if (!this.#isBusy) this.#step((_, out) => this.#readPending(out), undefined);
  }

  /** Reads up to the first events. */
  begin(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#sink = {
        push: (batch) => {
          this.#first = batch;
          resolve();
          return false;
        },
        end: resolve,
        fail: reject,
      };
      this.#chunks.resume();
    });
  }

  pushTo(sink: Sink<Batch>): Flow {
    this.#sink = sink;
    this.#hasToldEnd = false;
    return this;
  }

  resume(): void {
    const first = this.#first;
    this.#first = undefined;
    if (first && !this.#sink?.push(first)) return;
    if (!this.#isBusy && this.#mayReadOn()) this.#chunks.resume();
  }

  leave(): undefined {
    this.#first = undefined;
    this.#hasToldEnd = true;
    this.#over();
  }

  /** See {@link StreamAnswer.readArrived}. */
  readArrived(note: (events: Batch) => void): Promise<void> {
    this.#isUncounted = true;
    return readArrived(
      this,
      { body: this.#body, close: this.#close, bytes: () => this.#bytes },
      note,
    );
  }

  /** May more of the body be read? Where work must be done before, it begins now, and reading goes on behind it. */
  #mayReadOn(): boolean {
    if (this.#isOver) {
      if (!this.#hasToldEnd) this.#sink?.end();
      this.#hasToldEnd = true;
      return false;
    }
    if (!this.#isLarge && !this.#isUncertain) return true;
    void this.#prepare();
    return false;
  }

  async #prepare(): Promise<void> {
    this.#isBusy = true;
    let cause: unknown;
    const read = await (this.#isLarge ? this.#lift() : this.#count()).catch((error) => {
      cause = error;
      return this.#cut;
    });
    this.#isBusy = false;
    if (this.#step(read, cause)) this.#chunks.resume();
  }

  /** Takes the large parts out of the next event, and reads on. */
  async #lift(): Promise<Read<unknown>> {
    const next = this.#pending[this.#at];
    const data = next && (await this.#parts.takeFrom(dataOf(next)));
    // Only callers of Responses see an event as it came.
    const isShown = this.#options.request.operation === "responses";
    const rest = next && data && eventOf(next.name, data, isShown ? next.frame : undefined);
    this.#isLarge = false;
    return (_, out) => {
      if (rest) {
        this.#pending = this.#pending.with(this.#at, rest);
        this.#lifted.add(rest);
      }
      return this.#readPending(out);
    };
  }

  /** Counts the output so far, and reads on where it is within the bound. */
  async #count(): Promise<Read<unknown>> {
    const counted = await this.#gate.count();
    if (this.#withheld) return this.#judge(this.#withheld, counted);
    const next = counted === "within" ? this.#pending[this.#at] : undefined;
    const fitting = next && this.#gate.isDoubtful(next) ? await this.#gate.fitting(next) : next;
    this.#isUncertain = false;
    const isWithin = counted === "within" && fitting === next;
    return (_, out) => {
      if (!isWithin) {
        if (counted !== "past" && this.#gate.mayWithhold) return this.#withhold(fitting, out);
        if (fitting) this.#readNow(fitting, out);
        return this.#cutOff(out);
      }
      if (next) {
        this.#at++;
        this.#readNow(next, out);
      }
      return this.#readPending(out);
    };
  }

  /** Reads nothing more until the upstream has reported whether the answer is within its bound. */
  #withhold(fitting: SseEvent | undefined, out: AnswerEvent[]): CutReason | undefined {
    this.#withheld = new Withheld(fitting);
    this.#gate.lenient();
    return this.#readPending(out);
  }

  /**
   * Reads the withheld events where the upstream kept to the bound. Otherwise cuts the answer. Does neither until the upstream has
   * reported its usage.
   */
  #judge(withheld: Withheld, counted: Counted): Read<unknown> {
    const { fitting } = withheld;
    this.#isUncertain = false;
    return (_, out) => {
      if (counted !== "past" && !withheld.isDecided) return this.#readPending(out);
      if (counted !== "past" && this.#gate.isKept(withheld.usage))
        return this.#release(withheld, out);
      this.#withheld = undefined;
      if (fitting) this.#readNow(fitting, out);
      return this.#cutOff(out);
    };
  }

  #release({ events }: Withheld, out: AnswerEvent[]): CutReason | undefined {
    this.#withheld = undefined;
    this.#pending = [...events, ...this.#pending.slice(this.#at)];
    this.#at = 0;
    this.#released = events.length;
    return this.#readPending(out);
  }

  /** Reads, and pushes the resulting events. True where more of the body may be read. */
  #step<From>(read: Read<From>, from: From): boolean {
    // The reader may have left meanwhile.
    if (this.#isOver) return false;
    const out: AnswerEvent[] = [];
    try {
      let reason: CutReason | undefined;
      try {
        reason = read(from, out);
      } catch (error) {
        reason = this.#cut(error, out);
      }
      if (reason) this.#reader.end(reason, out);
      if (!this.#parts.isEmpty) {
        for (const event of out) event.frame = this.#parts.fill(event.frame);
      }
    } catch (error) {
      this.#over();
      this.#hasToldEnd = true;
      if (error instanceof UpstreamFailure) error.usage ??= this.#reader.usage;
      this.#sink?.fail(error);
      return false;
    }
    if (this.#reader.isEnded) this.#over();
    else if (this.#reader.isStopped) {
      this.#lastWait ??= setTimeout(this.#close, stopUsageWaitMs);
    }
    if (out.length > 0) {
      this.#hasSent = true;
      if (!this.#sink?.push(out)) return false;
    }
    return this.#mayReadOn();
  }

  #readPending(out: AnswerEvent[]): CutReason | undefined {
    // No caller gets any of these events.
    if (this.#withheld && this.#isUncounted) return this.#release(this.#withheld, out);
    for (;;) {
      if (this.#reader.isEnded) return undefined;
      const next = this.#pending[this.#at];
      if (!next && !this.#withheld) break;
      const bytes = next ? next.end - next.start : 0;
      this.#isLarge = next !== undefined && bytes > largeAnswerBytes && !this.#lifted.has(next);
      if (this.#isLarge) return undefined;
      this.#isUncertain = !this.#isUncounted && this.#isInDoubt(next);
      if (this.#isUncertain) return undefined;
      if (!next) break;
      this.#at++;
      if (this.#withheld) this.#setAside(next, this.#withheld);
      else this.#readNow(next, out);
    }
    if (this.#withheld) return undefined;
    this.#reader.settle(out);
    return this.#hasEnded ? "end" : undefined;
  }

  /** Must output be counted, or a decision made, before `next` is read? */
  #isInDoubt(next: SseEvent | undefined): boolean {
    if (this.#released > 0) return false;
    if (this.#withheld) {
      if (this.#hasEnded && !next) this.#withheld.end();
      return this.#withheld.isDecided || this.#gate.mustCount();
    }
    return next !== undefined && this.#gate.mustCount(next);
  }

  #setAside(next: SseEvent, withheld: Withheld): void {
    const event = withheld.add(next);
    if (event) this.#gate.saw(this.#gate.newText(event));
    if (withheld.isUsageAwaited) this.#lastWait ??= setTimeout(this.#close, stopUsageWaitMs);
  }

  #readNow(event: SseEvent, out: AnswerEvent[]): void {
    let at = out.length;
    this.#reader.read(event, out);
    if (this.#released > 0) this.#released--;
    else for (; at < out.length; at++) this.#gate.saw(out[at]?.text ?? "");
  }

  /** Ends the answer here because it has reached its bound. */
  #cutOff(out: AnswerEvent[]): undefined {
    this.#isCut = true;
    this.#options.onCut();
    this.#reader.cut(out);
    const last = out.at(-1);
    if (last?.ending === "incomplete") last.isCut = true;
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#lastWait);
    // A connection is kept after its answer's last event. One that is left in the middle of an answer is closed, because the upstream
    // would go on generating.
    const isWhole = this.#reader.isEnded && !this.#isCut;
    if (isWhole) this.#body.release();
    else this.#body.close();
  }
}

/** The way in which a stream that had begun was cut. In each case the caller still gets a terminal event. */
function cutReasonOf(error: unknown, { events, upstream, reply }: ReadStreamOptions): CutReason {
  const isTheirs = error instanceof UpstreamError || error instanceof UpstreamFailure;
  const isFault = isTheirs && error.kind !== "too_large" && !reply.body.isHeldBack();
  if (isFault) events.brokeOff(upstream);
  if (isTheirs && (error.kind === "timeout" || error.kind === "too_large")) return error.kind;
  if (isTheirs && error.kind === "cut") return "cut";
  if (!isTheirs) events.broke(upstream, error);
  return "garbage";
}
