import { whenAborted } from "#kit/base/abort.ts";
import type { Clock } from "#kit/time/clock.ts";

/** A tick that comes at regular intervals, as long as something waits for it. */
export interface Ticker {
  /** Something waits from now on. A ticker that rests starts again. */
  wake(): void;
  /** Ticks until `signal` aborts. Resolves then. */
  run(signal: AbortSignal): Promise<void>;
}

/** The work of a ticker, and its interval. */
export interface TickerOptions {
  clock: Clock;
  /** Milliseconds between two ticks. */
  tickMs: number;
  /** True where nothing waits. Then the next tick is put off until {@link Ticker.wake}. */
  isIdle(): boolean;
  /** Must not throw. */
  tick(): void;
}

/** Makes a ticker. It makes no ticks in a process in which nothing waits, because each would wake a core. */
export function createTicker({ clock, tickMs, isIdle, tick }: TickerOptions): Ticker {
  let life: AbortSignal | undefined;
  let isTicking = false;
  let ticking: Promise<void> | undefined;
  const tickUntilIdle = async (signal: AbortSignal) => {
    do {
      await clock.sleep(tickMs, signal).catch(() => {});
      tick();
    } while (!isIdle() && !signal.aborted);
    isTicking = false;
  };
  const wake = () => {
    if (isTicking || !life || life.aborted || isIdle()) return;
    isTicking = true;
    ticking = tickUntilIdle(life);
  };
  return {
    wake,
    async run(signal) {
      life = signal;
      wake();
      await whenAborted(signal);
      await ticking;
    },
  };
}
