import { httpLimits } from "./limits.ts";

/**
 * How long a body's reader kept its sender waiting, by the monotonic clock. The sender's own time-outs and ours must not be
 * the way to a free answer: what breaks off while the reader holds it back is the reader's doing.
 */
export class BackPressure {
  #pausedMs = 0;
  #pausedAtMs: number | undefined;
  #waitsSinceMs: number | undefined;
  /** Milliseconds for which the reader must still wait before a break is the sender's own again. */
  #owedMs = 0;

  /** The socket is not read from now on. */
  began(): void {
    this.#pausedAtMs ??= performance.now();
  }

  /** The reader has taken what lay there. */
  ended(): void {
    if (this.#pausedAtMs === undefined) return;
    const spanMs = performance.now() - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    this.#pausedMs += spanMs;
    if (spanMs >= httpLimits.heldBackMs) this.#owedMs = httpLimits.caughtUpMs;
  }

  /** The reader waits for the sender. */
  waits(): void {
    if (this.#owedMs > 0) this.#waitsSinceMs = performance.now();
  }

  /** The reader waits no more. */
  came(): void {
    if (this.#waitsSinceMs === undefined) return;
    this.#owedMs -= performance.now() - this.#waitsSinceMs;
    this.#waitsSinceMs = undefined;
  }

  /** Would a break be the reader's doing? */
  isHeldBack(): boolean {
    if (this.#owedMs > 0) return true;
    return this.#spanMs() >= httpLimits.heldBackMs;
  }

  /** Milliseconds in all. */
  pausedMs(): number {
    return this.#pausedMs + this.#spanMs();
  }

  #spanMs(): number {
    return this.#pausedAtMs === undefined ? 0 : performance.now() - this.#pausedAtMs;
  }
}
