// Puts steps between a stream and its reader: they change values, errors and ends. Steps that follow each other run in one call.

import { AsyncLocalStorage } from "node:async_hooks";
import { type Flow, Pushed, pushTo, type Sink } from "./push-stream.ts";

/** Functions that a stream's events pass on their way to its reader. An event without a function passes unchanged. */
export interface Stage<In, Out = In> {
  /** Replaces a value. May throw. */
  pass?(value: In): Out;
  /** The source has ended. May throw. */
  end?(): void;
  /** Replaces an error of the source by the one that the reader gets. */
  fail?(error: unknown): unknown;
  /** The reader leaves before the end. Called before the source learns of it. */
  leave?(): void;
  /**
   * Called when the reading begins, with a function that fails the stream at once, even while the source waits. The stages before this
   * one and the source then see the reader leave.
   */
  until?(stop: (reason: unknown) => void): void;
  /** Each call of the source is made within it. Values go on in the context of the reader. */
  enter?<R>(work: () => R): R;
}

// biome-ignore lint/suspicious/noExplicitAny: a stage takes the values of the one before it; `staged` sees to that.
type AnyStage = Stage<any, any>;

/** `source` with a stage behind it. A value passes several stages in one call. */
export function staged<In, Out = In>(
  source: AsyncIterable<In>,
  stage: Stage<In, Out>,
): Pushed<Out> {
  // Everything below a stage with `enter` happens within it, to the last error that is logged there.
  return source instanceof Staged && !stage.enter
    ? source.with(stage)
    : new Staged<Out>(source, [stage]);
}

class Staged<T> extends Pushed<T> {
  readonly #source: AsyncIterable<unknown>;
  /** From the source to the reader. Only the first may have an `enter`. */
  readonly #stages: readonly AnyStage[];

  constructor(source: AsyncIterable<unknown>, stages: readonly AnyStage[]) {
    super();
    this.#source = source;
    this.#stages = stages;
  }

  with<Out>(stage: Stage<T, Out>): Staged<Out> {
    return new Staged<Out>(this.#source, [...this.#stages, stage]);
  }

  pushTo(sink: Sink<T>): Flow {
    return new Stages(this.#source, this.#stages, sink as Sink<unknown>);
  }
}

class Stages implements Sink<unknown>, Flow {
  readonly #stages: readonly AnyStage[];
  readonly #sink: Sink<unknown>;
  readonly #flow: Flow;
  readonly #enter: NonNullable<AnyStage["enter"]> | undefined;
  #hasBegun = false;
  #isOver = false;
  /** A stage stopped the stream before its reader wanted anything. */
  #stopped: { error: unknown } | undefined;

  constructor(source: AsyncIterable<unknown>, stages: readonly AnyStage[], sink: Sink<unknown>) {
    this.#stages = stages;
    const enter = stages[0]?.enter;
    this.#enter = enter;
    this.#sink = sink;
    if (enter) {
      const outside = inContext(this);
      this.#flow = enter(() => pushTo(source, outside));
    } else this.#flow = pushTo(source, this);
    for (const [at, stage] of stages.entries()) stage.until?.((reason) => this.#stop(reason, at));
  }

  push(value: unknown): boolean {
    if (this.#isOver) return false;
    let passed = value;
    let at = 0;
    try {
      for (const stage of this.#stages) {
        if (stage.pass) passed = stage.pass(passed);
        at++;
      }
    } catch (error) {
      this.#stop(error, at);
      return false;
    }
    return this.#sink.push(passed);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    let at = 0;
    try {
      for (const stage of this.#stages) {
        stage.end?.();
        at++;
      }
    } catch (error) {
      // The stages behind it see an error like any other.
      this.#sink.fail(this.#meant(error, at + 1));
      return;
    }
    this.#sink.end();
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink.fail(this.#meant(error, 0));
  }

  resume(): void {
    this.#hasBegun = true;
    if (this.#stopped) {
      const { error } = this.#stopped;
      this.#stopped = undefined;
      this.#sink.fail(error);
    } else if (this.#isOver) return;
    else if (this.#enter) this.#enter(() => this.#flow.resume());
    else this.#flow.resume();
  }

  leave(): Promise<unknown> | undefined {
    if (this.#isOver) return undefined;
    this.#isOver = true;
    return this.#leave(this.#stages);
  }

  /** The stage at `at` ends the stream. The stages behind it see an error. */
  #stop(reason: unknown, at: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const error = this.#meant(reason, at + 1);
    if (this.#hasBegun) this.#sink.fail(error);
    else this.#stopped = { error };
    this.#leave(this.#stages.slice(0, at))?.catch(() => {});
  }

  #leave(stages: readonly AnyStage[]): Promise<unknown> | undefined {
    for (const stage of stages.toReversed()) stage.leave?.();
    return this.#enter ? this.#enter(() => this.#flow.leave()) : this.#flow.leave();
  }

  /** The error that the reader gets, after the stages from `from` on. */
  #meant(cause: unknown, from: number): unknown {
    let error = cause;
    for (const { fail } of this.#stages.slice(from)) if (fail) error = fail(error);
    return error;
  }
}

/** A sink whose functions run in the (trace) context in which it was made, and not in that of their caller. */
function inContext<T>(sink: Sink<T>): Sink<T> {
  const within = AsyncLocalStorage.snapshot();
  const [push, end, fail] = [sink.push.bind(sink), sink.end.bind(sink), sink.fail.bind(sink)];
  return {
    push: (value) => within(push, value),
    end: () => within(end),
    fail: (error) => within(fail, error),
  };
}
