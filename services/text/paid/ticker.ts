import { whenAborted } from "#kit/base/abort.ts";
import type { Clock } from "#kit/time/clock.ts";

/** A tick that comes again and again, for as long as something waits for it. */
export interface Ticker {
  /** Something waits from now on: a ticker that rests begins anew. */
  wake(): void;
  /** Ticks until `signal` aborts; resolves then. */
  run(signal: AbortSignal): Promise<void>;
}

/** What a ticker does, and when. */
export interface TickerOptions {
  clock: Clock;
  /** Milliseconds between two ticks. */
  tickMs: number;
  /** True where nothing waits: the next tick is put off until {@link Ticker.wake}. */
  isIdle(): boolean;
  /** Must not throw. */
  tick(): void;
}

/** Makes a ticker. A process in which nothing waits makes no ticks: it would wake its core for each. */
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
