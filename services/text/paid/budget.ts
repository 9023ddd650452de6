// Bounds many short waits without a timer for each. Requests end too often for a timer each.

import type { Awaitable } from "#kit/base/awaitable.ts";
import type { Clock } from "#kit/time/clock.ts";

/** Bounds waits of the same length without a timer for each. Thousands of requests end every second, and hardly any waits that long. */
export interface Budgets {
  /** `next` of the result of `work`, or of undefined once the time is over (and up to a tick later). The work goes on. */
  within<T, R>(work: Promise<T>, next: (value: T | undefined) => Awaitable<R>): Promise<R>;
  /** Ends the waits whose time is over. It must be called every tick while something waits. */
  tick(): void;
  /** True where nothing waits. */
  isIdle(): boolean;
}

interface Wait {
  until: number;
  end(): void;
}

/** Budgets of `budgetMs` each. `begun` is called with each wait that begins. */
export function createBudgets(clock: Clock, budgetMs: number, begun: () => void): Budgets {
  const waits = new Set<Wait>();
  return {
    within<T, R>(work: Promise<T>, next: (value: T | undefined) => Awaitable<R>): Promise<R> {
      return new Promise((resolve, reject) => {
        const end = (value?: T) => {
          // The first end counts: that of the work, or that of the time.
          if (!waits.delete(wait)) return;
          try {
            resolve(next(value));
          } catch (error) {
            reject(error);
          }
        };
        const wait: Wait = { until: clock.steady() + budgetMs, end };
        waits.add(wait);
        begun();
        work.then(end, (error) => {
          waits.delete(wait);
          reject(error);
        });
      });
    },
    tick() {
      const now = clock.steady();
      for (const wait of waits) {
        // The waits are in the order of their times.
        if (wait.until > now) return;
        wait.end();
      }
    },
    isIdle: () => waits.size === 0,
  };
}
