import type { HttpBody, HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { createSseParser, type SseEvent } from "#kit/upstream/sse.ts";
import type { UpstreamEvents } from "./events.ts";
import { failureOf, UpstreamFailure } from "./failure.ts";
import { stopUsageWaitMs } from "./limits.ts";
import type { OutputGate } from "./output-gate.ts";
import { parseEvent } from "./parse-event.ts";
import type { AnswerEvent, StreamAnswer, UpstreamRequest } from "./port.ts";
import type { CutReason, StreamReader } from "./stream-reader.ts";
import { usageIn } from "./usage.ts";

/** What a stream is read with. */
export interface ReadStreamOptions {
  reply: HttpReply;
  reader: StreamReader;
  /** Counts the output, and says where it is too much. */
  gate: OutputGate;
  request: Pick<UpstreamRequest, "signal">;
  /** Its name. */
  upstream: string;
  events: Pick<UpstreamEvents, "broke">;
  /** Called where the answer was cut at the bound of its output. */
  onCut(): void;
}

/** Resolves when the first events are there. Throws `UpstreamFailure` where none came. */
export async function readStream(options: ReadStreamOptions): Promise<StreamAnswer> {
  const { upstream, request, reply, reader } = options;
  const batches = new Batches(options);
  try {
    await batches.begin();
    return {
      kind: "stream",
      batches,
      upstream,
      isHeldBack: () => reply.body.isHeldBack(),
      isOutputDone: () => reader.isOutputDone,
      unseen: reader.unseen,
      isStopped: () => reader.isStopped === true,
    };
  } catch (error) {
    request.signal.throwIfAborted();
    throw failureOf(error) ?? error;
  }
}

type Step = IteratorResult<readonly AnswerEvent[]>;

const ended: Step = { done: true, value: undefined };

/** The events of one answer; to be read once. By hand: a generator takes half a dozen promises for each delta. */
class Batches implements AsyncIterableIterator<readonly AnswerEvent[]> {
  readonly #options: ReadStreamOptions;
  readonly #body: HttpBody;
  readonly #reader: StreamReader;
  readonly #parser = createSseParser({ maxEventBytes: answerLimits.eventBytes });
  readonly #gate: OutputGate;
  /** Events that came, from the `#at`th on not read yet. */
  #pending: SseEvent[] = [];
  #at = 0;
  /** Behind them is the body's end. */
  #hasEnded = false;
  /** What was read could be more than the bound: it is to be counted before more is read. */
  #isUncertain = false;
  #isCut = false;
  #first: Step | undefined;
  #hasSent = false;
  #isOver = false;
  /** Runs while upstream is read on behind a stop sequence. */
  #lastWait: NodeJS.Timeout | undefined;
  readonly #close = () => this.#body.close();
  readonly #came = (chunk: Buffer | undefined) => this.#took(chunk) ?? this.#more();
  readonly #failed = (cause: unknown) => this.#took(undefined, { cause }) ?? ended;

  constructor(options: ReadStreamOptions) {
    this.#options = options;
    this.#body = options.reply.body;
    this.#reader = options.reader;
    this.#gate = options.gate;
  }

  /** Reads up to the first events. */
  async begin(): Promise<void> {
    this.#first = await this.next();
  }

  next(): Promise<Step> {
    const step = this.#first ?? (this.#isOver ? ended : undefined);
    this.#first = undefined;
    if (step) return Promise.resolve(step);
    return this.#isUncertain ? this.#more() : this.#body.next().then(this.#came, this.#failed);
  }

  async return(): Promise<Step> {
    this.#first = undefined;
    this.#over();
    return ended;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next events after a chunk without any. A loop, because many such may follow each other. */
  async #more(): Promise<Step> {
    for (;;) {
      let step: Step | undefined;
      try {
        step = this.#isUncertain ? await this.#count() : this.#took(await this.#body.next());
      } catch (error) {
        if (this.#isOver) throw error;
        step = this.#failed(error);
      }
      if (step) return step;
    }
  }

  /** Counts what was read, and reads on where that is within the bound. */
  async #count(): Promise<Step | undefined> {
    const isPast = await this.#gate.isPast();
    const next = isPast ? undefined : this.#pending[this.#at];
    const fitting = next && this.#gate.isDoubtful(next) ? await this.#gate.fitting(next) : next;
    // Its reader may have left meanwhile.
    if (this.#isOver) return ended;
    this.#isUncertain = false;
    return this.#step((out) => {
      if (isPast) return this.#cutOff(out);
      if (!fitting) return this.#readPending(out);
      this.#pending[this.#at] = fitting;
      this.#readOne(out);
      return fitting === next ? this.#readPending(out) : this.#cutOff(out);
    });
  }

  /** What a chunk, the body's end (undefined) or its failure comes to; undefined: nothing yet. */
  #took(chunk: Buffer | undefined, failure?: { cause: unknown }): Step | undefined {
    return this.#step((out) => {
      if (failure) return this.#cut(failure.cause, out);
      return this.#read(chunk, out);
    });
  }

  #step(read: (out: AnswerEvent[]) => CutReason | undefined): Step | undefined {
    const out: AnswerEvent[] = [];
    try {
      const reason = this.#tried(read, out);
      if (reason) this.#reader.end(reason, out);
    } catch (error) {
      this.#over();
      throw error;
    }
    if (this.#reader.isEnded) this.#over();
    else if (this.#reader.isStopped) this.#lastWait ??= setTimeout(this.#close, stopUsageWaitMs);
    if (out.length === 0) return this.#isOver ? ended : undefined;
    this.#hasSent = true;
    return { done: false, value: out };
  }

  /** Appends what has come to `out`; gives the reason where nothing more will. */
  #read(chunk: Buffer | undefined, out: AnswerEvent[]): CutReason | undefined {
    const last = chunk ? undefined : this.#parser.end();
    this.#pending = chunk ? this.#parser.push(chunk) : last ? [last] : [];
    this.#at = 0;
    this.#hasEnded = !chunk;
    return this.#readPending(out);
  }

  #readPending(out: AnswerEvent[]): CutReason | undefined {
    for (;;) {
      if (this.#reader.isEnded) return undefined;
      const next = this.#pending[this.#at];
      this.#isUncertain = next ? this.#gate.isDoubtful(next) || this.#gate.mustCount() : false;
      if (this.#isUncertain) return undefined;
      if (!next) break;
      this.#readOne(out);
    }
    this.#reader.settle(out);
    return this.#hasEnded ? "end" : undefined;
  }

  #readOne(out: AnswerEvent[]): void {
    const next = this.#pending[this.#at++];
    let at = out.length;
    if (next) this.#readBy(next, out);
    for (; at < out.length; at++) this.#gate.saw(out[at]?.text ?? "");
  }

  #readBy(source: SseEvent, out: AnswerEvent[]): void {
    try {
      this.#reader.read(source, out);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const event = parseEvent(source);
      if (typeof event === "object") error.usage ??= usageIn(event);
      throw error;
    }
  }

  /** Ends the answer here: it has reached its bound. */
  #cutOff(out: AnswerEvent[]): undefined {
    this.#isCut = true;
    this.#options.onCut();
    this.#reader.cut(out);
    const last = out.at(-1);
    if (last?.ending === "incomplete") last.isCut = true;
  }

  #tried(
    read: (out: AnswerEvent[]) => CutReason | undefined,
    out: AnswerEvent[],
  ): CutReason | undefined {
    try {
      return read(out);
    } catch (error) {
      return this.#cut(error, out);
    }
  }

  /** Why it is cut. Throws before the first event: the caller can still get an error, or another upstream's answer. */
  #cut(error: unknown, out: readonly AnswerEvent[]): CutReason {
    this.#options.request.signal.throwIfAborted();
    if (!this.#hasSent && out.length === 0) throw error;
    return cutReasonOf(error, this.#options);
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#lastWait);
    // After its last event a connection is worth keeping; one that is left in the middle would go on generating.
    const isWhole = this.#reader.isEnded && !this.#isCut;
    if (isWhole) this.#body.release();
    else this.#body.close();
  }
}

/** How a stream that had begun was cut. Whatever it was, the caller is owed a terminal event. */
function cutReasonOf(error: unknown, { events, upstream }: ReadStreamOptions): CutReason {
  if (error instanceof UpstreamError && error.kind === "timeout") return "timeout";
  if (error instanceof UpstreamError && error.kind === "cut") return "cut";
  const isTheirs = error instanceof UpstreamError || error instanceof UpstreamFailure;
  if (!isTheirs) events.broke(upstream, error);
  return "garbage";
}
