import type { HttpBody, HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import type { UpstreamEvents } from "./events.ts";
import { failureOf, UpstreamFailure } from "./failure.ts";
import type { AnswerEvent, StreamAnswer, UpstreamRequest } from "./port.ts";
import type { CutReason, StreamReader } from "./stream-reader.ts";

/** What a stream is read with. */
export interface ReadStreamOptions {
  reply: HttpReply;
  reader: StreamReader;
  request: Pick<UpstreamRequest, "signal">;
  /** Its name. */
  upstream: string;
  events: Pick<UpstreamEvents, "broke">;
}

/** Resolves when the first events are there. Throws `UpstreamFailure` where none came. */
export async function readStream(options: ReadStreamOptions): Promise<StreamAnswer> {
  const { upstream, request } = options;
  const batches = new Batches(options);
  try {
    await batches.begin();
    return { kind: "stream", batches, upstream };
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
  #first: Step | undefined;
  #hasSent = false;
  #isOver = false;
  readonly #came = (chunk: Buffer | undefined) => this.#took(chunk) ?? this.#more();
  readonly #failed = (cause: unknown) => this.#took(undefined, { cause }) ?? ended;

  constructor(options: ReadStreamOptions) {
    this.#options = options;
    this.#body = options.reply.body;
    this.#reader = options.reader;
  }

  /** Reads up to the first events. */
  async begin(): Promise<void> {
    this.#first = await this.next();
  }

  next(): Promise<Step> {
    const step = this.#first ?? (this.#isOver ? ended : undefined);
    this.#first = undefined;
    return step ? Promise.resolve(step) : this.#body.next().then(this.#came, this.#failed);
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
        step = this.#took(await this.#body.next());
      } catch (error) {
        if (this.#isOver) throw error;
        step = this.#failed(error);
      }
      if (step) return step;
    }
  }

  /** What a chunk, the body's end (undefined) or its failure comes to; undefined: nothing yet. */
  #took(chunk: Buffer | undefined, failure?: { cause: unknown }): Step | undefined {
    const out: AnswerEvent[] = [];
    try {
      const reason = failure ? this.#cut(failure.cause, out) : this.#read(chunk, out);
      if (reason) this.#reader.end(reason, out);
    } catch (error) {
      this.#over();
      throw error;
    }
    if (this.#reader.isEnded) this.#over();
    if (out.length === 0) return this.#isOver ? ended : undefined;
    this.#hasSent = true;
    return { done: false, value: out };
  }

  /** Appends what has come to `out`; gives the reason where nothing more will. */
  #read(chunk: Buffer | undefined, out: AnswerEvent[]): CutReason | undefined {
    try {
      const last = chunk ? undefined : this.#parser.end();
      const events = chunk ? this.#parser.push(chunk) : last ? [last] : [];
      for (const event of events) {
        this.#reader.read(event, out);
        if (this.#reader.isEnded) return undefined;
      }
      this.#reader.settle(out);
    } catch (error) {
      return this.#cut(error, out);
    }
    return chunk ? undefined : "end";
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
    // After its last event a connection is worth keeping; one that is left in the middle would go on generating.
    if (this.#reader.isEnded && !this.#reader.isCut) this.#body.release();
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
