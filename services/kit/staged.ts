/** What happens to the steps of an iteration on their way to its reader; what a stage leaves out passes. */
export interface Stage<In, Out = In> {
  /** A step of the source; may throw in its place. */
  pass?(step: IteratorResult<In>): IteratorResult<Out>;
  /** An error of the source: gives what is thrown in its place. */
  fail?(error: unknown): unknown;
  /** The reader leaves before the end; called before the source hears of it. */
  leave?(): void;
  /**
   * Called when the reading begins, with what ends it: the step that is waited for fails at once, and so does each later
   * one, whatever the source is about. The stages before this one, and the source, are left.
   */
  until?(stop: (reason: unknown) => void): void;
  /** Each call of the source is made within it. */
  enter?<R>(work: () => R): R;
}

// biome-ignore lint/suspicious/noExplicitAny: what a stage takes is what the one before it gives; `staged` sees to that.
type AnyStage = Stage<any, any>;

/**
 * `source` with a stage behind it. Stages behind stages share a promise: each delta passes through half a dozen of them,
 * and a promise or a turn of the microtask queue for each would cost more than what they do.
 */
export function staged<In, Out = In>(
  source: AsyncIterable<In>,
  stage: Stage<In, Out>,
): AsyncIterable<Out> {
  // What lies under `enter` happens within it, to the last error that is logged there.
  return source instanceof Staged && !stage.enter
    ? source.with(stage)
    : new Staged<Out>(source, [stage]);
}

class Staged<T> implements AsyncIterable<T> {
  readonly #source: AsyncIterable<unknown>;
  /** From the source to the reader; only the first may have an `enter`. */
  readonly #stages: readonly AnyStage[];

  constructor(source: AsyncIterable<unknown>, stages: readonly AnyStage[]) {
    this.#source = source;
    this.#stages = stages;
  }

  with<Out>(stage: Stage<T, Out>): Staged<Out> {
    return new Staged<Out>(this.#source, [...this.#stages, stage]);
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return new Steps<T>(this.#source[Symbol.asyncIterator](), this.#stages);
  }
}

class Steps<T> implements AsyncIterator<T> {
  readonly #it: AsyncIterator<unknown>;
  readonly #stages: readonly AnyStage[];
  readonly #first: AnyStage | undefined;
  readonly #read = () => this.#it.next();
  readonly #pass = (step: IteratorResult<unknown>) => this.#passed(step);
  readonly #fail = (error: unknown): never => {
    throw this.#meant(error, 0);
  };
  readonly #mayStop: boolean;
  #stopped: { error: unknown } | undefined;
  /** Fails the step that is waited for; it does nothing to one that was given. */
  #break: ((error: unknown) => void) | undefined;

  constructor(it: AsyncIterator<unknown>, stages: readonly AnyStage[]) {
    this.#it = it;
    this.#stages = stages;
    this.#first = stages[0];
    this.#mayStop = stages.some((stage) => stage.until);
    for (const [at, stage] of stages.entries()) stage.until?.((reason) => this.#stop(reason, at));
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#stopped) return Promise.reject(this.#stopped.error);
    const step = this.#first?.enter ? this.#first.enter(this.#read) : this.#it.next();
    if (!this.#mayStop) return step.then(this.#pass, this.#fail);
    return new Promise((resolve, reject) => {
      this.#break = reject;
      step.then(
        (source) => this.#give(source, resolve, reject),
        (error) => this.#stopped ?? reject(this.#meant(error, 0)),
      );
    });
  }

  #give(
    source: IteratorResult<unknown>,
    resolve: (step: IteratorResult<T>) => void,
    reject: (error: unknown) => void,
  ): void {
    // Its reader was told already.
    if (this.#stopped) return;
    try {
      resolve(this.#passed(source));
    } catch (error) {
      reject(error);
    }
  }

  async return(value?: unknown): Promise<IteratorResult<T>> {
    await this.#leave(this.#stages, value);
    return { done: true, value };
  }

  #leave(stages: readonly AnyStage[], value?: unknown) {
    for (const stage of stages.toReversed()) stage.leave?.();
    const left = () => this.#it.return?.(value);
    return this.#first?.enter ? this.#first.enter(left) : left();
  }

  #stop(reason: unknown, at: number): void {
    if (this.#stopped) return;
    this.#stopped = { error: reason };
    this.#stopped.error = this.#meant(reason, at + 1);
    this.#break?.(this.#stopped.error);
    this.#leave(this.#stages.slice(0, at))?.catch(() => {});
  }

  #passed(source: IteratorResult<unknown>): IteratorResult<T> {
    let step = source;
    let at = 0;
    try {
      for (; at < this.#stages.length; at++) step = this.#stages[at]?.pass?.(step) ?? step;
    } catch (error) {
      // To the stages behind it, it is an error like any other.
      throw this.#meant(error, at + 1);
    }
    return step as IteratorResult<T>;
  }

  /** What an error is to the reader, behind the stages from `from` on. */
  #meant(cause: unknown, from: number): unknown {
    let error = cause;
    for (let at = from; at < this.#stages.length; at++) {
      const stage = this.#stages[at];
      if (stage?.fail) error = stage.fail(error);
    }
    return error;
  }
}
