// Keeps the deadline and the cancellation of one internal call, on either side of every transport.

import { Code, ConnectError } from "@connectrpc/connect";
import type { StopSignal } from "../../base/stop.ts";

/** Longest timer that Node has, in milliseconds (24 days). A longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** The bounds of a call. */
export interface CallBounds {
  /** The caller's signal. Its abort aborts the call. */
  signal?: StopSignal | undefined;
  /** Milliseconds until the call fails with DeadlineExceeded. 0 and less: at once. Undefined: none. */
  timeoutMs?: number | undefined;
  /** Makes the error of a passed deadline. Default: DeadlineExceeded. */
  late?: (() => unknown) | undefined;
}

/**
 * The life of one call: its deadline, its cancellation, its end. It makes an AbortSignal only where the handler asks for one, and no
 * DOMException at all. Both cost more than all other work of a short call here.
 */
export class Call {
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #followed: StopSignal[] | undefined;
  #listeners: ((reason: unknown) => void)[] | undefined;
  #state: "open" | "aborted" | "over" = "open";
  #reason: unknown;
  readonly #endsAt: number | undefined;
  readonly #onFollowed = () => this.abort(this.#followed?.find((one) => one.aborted)?.reason);

  constructor({ signal, timeoutMs, late = deadlineError }: CallBounds) {
    if (timeoutMs !== undefined) {
      this.#endsAt = performance.now() + timeoutMs;
      if (timeoutMs <= 0) this.abort(late());
      else if (timeoutMs <= maxTimerMs) {
        this.#timer = setTimeout(() => this.abort(late()), timeoutMs);
      }
    }
    if (signal) this.follow(signal);
  }

  /** Aborts with the call, and when it is over. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#state === "aborted") this.#controller.abort(this.#reason);
      if (this.#state === "over") this.#controller.abort(overError());
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#state === "aborted";
  }

  /** True where the deadline ended the call. */
  get isLate(): boolean {
    const reason = this.#reason;
    return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
  }

  /** Milliseconds left, below 0 when it is late. Undefined without a deadline. */
  leftMs(): number | undefined {
    return this.#endsAt === undefined ? undefined : this.#endsAt - performance.now();
  }

  /** Aborts this call when `signal` aborts. */
  follow(signal: StopSignal): void {
    if (this.#state !== "open" || signal === this.#controller?.signal) return;
    if (signal.aborted) {
      this.abort(signal.reason);
      return;
    }
    signal.addEventListener("abort", this.#onFollowed);
    this.#followed ??= [];
    this.#followed.push(signal);
  }

  /** Calls `listener` once when the call is aborted, at once where it already is. Never called when the call ends well. */
  onAbort(listener: (reason: unknown) => void): void {
    if (this.#state === "aborted") listener(this.#reason);
    if (this.#state !== "open") return;
    this.#listeners ??= [];
    this.#listeners.push(listener);
  }

  /** Gives the call up. Does nothing after its end. */
  abort(reason: unknown): void {
    if (this.#state !== "open") return;
    this.#state = "aborted";
    this.#reason = reason;
    this.#release();
    const listeners = this.#listeners ?? [];
    this.#listeners = undefined;
    for (const listener of listeners) listener(reason);
    this.#controller?.abort(reason);
  }

  /** Throws the reason where the call is aborted. */
  throwIfAborted(): void {
    if (this.#state === "aborted") throw this.#reason;
  }

  /** Ends the call: no timer and no listener stays. */
  end(): void {
    if (this.#state !== "open") return;
    this.#state = "over";
    this.#release();
    this.#listeners = undefined;
    this.#controller?.abort(overError());
  }

  /** The result of `work`, or the reason of the call's abort as soon as that comes. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject);
      this.onAbort(reject);
    });
  }

  /** The error for the caller. Where the call was aborted, that is the reason of the abort. */
  errorOf(error: unknown): ConnectError {
    return this.isAborted
      ? ConnectError.from(this.#reason, Code.Canceled)
      : ConnectError.from(error);
  }

  #release(): void {
    clearTimeout(this.#timer);
    for (const signal of this.#followed ?? []) {
      signal.removeEventListener("abort", this.#onFollowed);
    }
    this.#followed = undefined;
  }
}

function deadlineError(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

let sharedOverError: ConnectError | undefined;

/** One error for all calls, because an Error is expensive to make. It holds nothing of any call. */
function overError(): ConnectError {
  sharedOverError ??= new ConnectError("the call is over", Code.Canceled);
  return sharedOverError;
}
