// Streams that push their values by plain calls. Async iterators make promises for each value, which cost more than the rest of a
// text stream's way through a process.

/** Takes a stream in plain calls: no promise and no turn of the event loop comes between two values. None of its functions throws. */
export interface Sink<T> {
  /** False: the sink is full, and takes no value until its reader resumes. */
  push(value: T): boolean;
  end(): void;
  fail(error: unknown): void;
}

/** A reader's hold on a stream that is pushed to its sink. */
export interface Flow {
  /** The sink takes more. No value is pushed before the first call. A call during a push asks for the next value, too. */
  resume(): void;
  /** The reader leaves before the end, and gets no further value. Resolves when the source has ended, where that takes time. */
  leave(): Promise<unknown> | undefined;
}

/** A stream that is pushed, to one reader. It can also be pulled like any other, which costs promises for each value. */
export abstract class Pushed<T> implements AsyncIterable<T> {
  abstract pushTo(sink: Sink<T>): Flow;

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return new Pulled(this);
  }
}

/** A {@link Pushed} that starts by calling `begin`. */
export function pushed<T>(begin: (sink: Sink<T>) => Flow): Pushed<T> {
  return new Beginning(begin);
}

/** A stream of one value. */
export function single<T>(value: T): Pushed<T> {
  return pushed((sink) => {
    let isGiven = false;
    let isOver = false;
    return {
      resume() {
        const isFirst = !isGiven;
        isGiven = true;
        if (isOver || (isFirst && !sink.push(value))) return;
        // The sink may have resumed during the push.
        if (!isOver) sink.end();
        isOver = true;
      },
      leave() {
        isOver = true;
        return undefined;
      },
    };
  });
}

/** Pushes any stream to `sink`. One that cannot push is pulled as the sink takes more. */
export function pushTo<T>(source: AsyncIterable<T>, sink: Sink<T>): Flow {
  return source instanceof Pushed ? source.pushTo(sink) : new Pump(source, sink);
}

/**
 * Reads a stream to its end. `take` answers true where it takes more, false where it leaves, or a promise where it takes more later.
 * Rejects with the stream's error, or with what `take` throws.
 */
export function consume<T>(
  source: AsyncIterable<T>,
  take: (value: T) => Promise<unknown> | boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (error: unknown) => {
      flow.leave()?.catch(() => {});
      reject(error);
    };
    const flow = pushTo(source, {
      push(value) {
        try {
          const room = take(value);
          if (room === true) return true;
          if (room) room.then(() => flow.resume(), leave);
          else {
            flow.leave()?.catch(() => {});
            resolve();
          }
        } catch (error) {
          leave(error);
        }
        return false;
      },
      end: resolve,
      fail: reject,
    });
    flow.resume();
  });
}

/** The stream that `begin` makes, or resolves to. `begin` is called when the reader wants the first value. */
export function later<T>(begin: () => AsyncIterable<T> | Promise<AsyncIterable<T>>): Pushed<T> {
  return pushed((sink) => {
    let flow: Flow | undefined;
    let hasBegun = false;
    let isLeft = false;
    const came = (source: AsyncIterable<T>) => {
      flow = pushTo(source, sink);
      if (isLeft) flow.leave()?.catch(() => {});
      else flow.resume();
    };
    const failed = (error: unknown) => {
      if (!isLeft) sink.fail(error);
    };
    return {
      resume() {
        if (flow) flow.resume();
        else if (!hasBegun) {
          hasBegun = true;
          try {
            const beginning = begin();
            if (beginning instanceof Promise) beginning.then(came, failed);
            else came(beginning);
          } catch (error) {
            failed(error);
          }
        }
      },
      leave() {
        isLeft = true;
        return flow?.leave();
      },
    };
  });
}

class Beginning<T> extends Pushed<T> {
  readonly #begin: (sink: Sink<T>) => Flow;

  constructor(begin: (sink: Sink<T>) => Flow) {
    super();
    this.#begin = begin;
  }

  pushTo(sink: Sink<T>): Flow {
    return this.#begin(sink);
  }
}

/** Pulls a stream as its sink takes more. */
class Pump<T> implements Flow {
  readonly #it: AsyncIterator<T>;
  readonly #sink: Sink<T>;
  #isWanted = false;
  /** The reader resumed while a value was being pushed. */
  #isAskedAgain = false;
  #isOver = false;
  readonly #took = (step: IteratorResult<T>) => {
    if (this.#isOver) return;
    if (step.done) {
      this.#isOver = true;
      this.#sink.end();
      return;
    }
    try {
      this.#isAskedAgain = false;
      const takesMore = this.#sink.push(step.value);
      this.#isWanted = takesMore || this.#isAskedAgain;
      if (this.#isWanted) this.#pull();
    } catch (error) {
      // A fault in the code behind the sink ends this stream, and not the process.
      this.leave()?.catch(() => {});
      this.#sink.fail(error);
    }
  };
  readonly #failed = (error: unknown) => {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink.fail(error);
  };

  constructor(source: AsyncIterable<T>, sink: Sink<T>) {
    this.#it = source[Symbol.asyncIterator]();
    this.#sink = sink;
  }

  resume(): void {
    this.#isAskedAgain = true;
    if (this.#isWanted || this.#isOver) return;
    this.#isWanted = true;
    this.#pull();
  }

  leave(): Promise<unknown> | undefined {
    if (this.#isOver) return undefined;
    this.#isOver = true;
    return this.#it.return?.();
  }

  #pull(): void {
    if (!this.#isOver) this.#it.next().then(this.#took, this.#failed);
  }
}

/** A pushed stream as an iterator. Its sink is full unless its reader waits for a value. */
class Pulled<T> implements AsyncIterableIterator<T>, Sink<T> {
  readonly #flow: Flow;
  #waiting: PromiseWithResolvers<IteratorResult<T>> | undefined;
  #over: { error: unknown } | "ended" | undefined;

  constructor(source: Pushed<T>) {
    this.#flow = source.pushTo(this);
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#waiting) {
      const again = () => this.next();
      return this.#waiting.promise.then(again, again);
    }
    if (this.#over === "ended") return Promise.resolve({ done: true, value: undefined });
    if (this.#over) return Promise.reject(this.#over.error);
    const waiting = Promise.withResolvers<IteratorResult<T>>();
    this.#waiting = waiting;
    this.#flow.resume();
    return waiting.promise;
  }

  async return(value?: unknown): Promise<IteratorResult<T>> {
    const wasOver = this.#over !== undefined;
    this.end();
    if (!wasOver) await this.#flow.leave();
    return { done: true, value };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(value: T): boolean {
    this.#taken()?.resolve({ done: false, value });
    return false;
  }

  end(): void {
    this.#over ??= "ended";
    this.#taken()?.resolve({ done: true, value: undefined });
  }

  fail(error: unknown): void {
    this.#over ??= { error };
    this.#taken()?.reject(error);
  }

  #taken(): PromiseWithResolvers<IteratorResult<T>> | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}
