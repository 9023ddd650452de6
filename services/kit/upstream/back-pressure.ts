import { httpLimits } from "./limits.ts";

/**
 * Turns of the event loop after which bytes in the kernel would have come. A socket that is read again is asked in the next turn. Turns
 * are counted, not time, because a turn of a busy process takes any time, and the reader only seems to wait in it.
 */
const turnsToRead = 3;

/**
 * How long a body's reader kept its sender waiting, by the monotonic clock. A caller must not get a free answer by means of a time-out,
 * the sender's or ours. So a break while the reader holds the sender back counts as the reader's doing.
 */
export class BackPressure {
  #lainMs = 0;
  #liesSinceMs: number | undefined;
  #pausedAtMs: number | undefined;
  #waitsSinceMs: number | undefined;
  /** The turn of the event loop that is awaited before a wait counts. */
  #turn: NodeJS.Immediate | undefined;
  /** Milliseconds for which the sender was kept waiting, minus those for which the reader has waited since. */
  #owedMs = 0;

  /** Bytes came that the reader did not wait for. */
  lies(): void {
    this.#liesSinceMs ??= performance.now();
  }

  /** From now on the socket is not read. */
  began(): void {
    this.#pausedAtMs ??= performance.now();
  }

  /** The reader has taken the waiting bytes. */
  ended(): void {
    if (this.#liesSinceMs !== undefined) this.#lainMs += performance.now() - this.#liesSinceMs;
    this.#liesSinceMs = undefined;
    if (this.#pausedAtMs === undefined) return;
    const spanMs = performance.now() - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    const { heldBackMs, caughtUpMs } = httpLimits;
    const owedMs = spanMs >= heldBackMs ? caughtUpMs : spanMs;
    this.#owedMs = Math.min(this.#owedMs + owedMs, caughtUpMs + heldBackMs);
  }

  /** The reader waits for the sender. */
  waits(): void {
    if (this.#owedMs > 0) this.#waitsAfter(turnsToRead);
  }

  /** The reader does not wait any longer. */
  came(): void {
    clearImmediate(this.#turn);
    if (this.#waitsSinceMs === undefined) return;
    this.#owedMs = Math.max(0, this.#owedMs - (performance.now() - this.#waitsSinceMs));
    this.#waitsSinceMs = undefined;
  }

  #waitsAfter(turns: number): void {
    if (turns === 0) this.#waitsSinceMs = performance.now();
    else this.#turn = setImmediate(() => this.#waitsAfter(turns - 1));
  }

  /** Would a break of the connection be the reader's doing? */
  isHeldBack(): boolean {
    return this.#owedMs + since(this.#pausedAtMs) >= httpLimits.heldBackMs;
  }

  /** Milliseconds in all in which the reader had bytes to read and did not read them. */
  lainMs(): number {
    return this.#lainMs + since(this.#liesSinceMs);
  }
}

function since(ms: number | undefined): number {
  return ms === undefined ? 0 : performance.now() - ms;
}
