// A signal that ends work, which costs less than an AbortSignal. The path of a text request uses it.

/** Says whether work may go on. An AbortSignal is one, and a {@link Stop} too. */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** The same as an AbortSignal, for libraries. */
export function signalOf(stop: StopSignal): AbortSignal {
  return stop instanceof Stop ? stop.signal : (stop as AbortSignal);
}

/** Stops the work of one request, once. An AbortController does the same, and takes many times as much memory. */
export class Stop implements StopSignal {
  aborted = false;
  reason: unknown;
  #listeners: (() => void)[] = [];
  #controller: AbortController | undefined;

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  /** Each listener is called once, in the order of their coming. One that comes after the end is not called. */
  addEventListener(_: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  /** The same as a signal, for libraries and for rare work. It is made when it is wanted. */
  get signal(): AbortSignal {
    this.#controller ??= this.#makeController();
    return this.#controller.signal;
  }

  #makeController(): AbortController {
    const controller = new AbortController();
    if (this.aborted) controller.abort(this.reason);
    else this.#listeners.push(() => controller.abort(this.reason));
    return controller;
  }
}
