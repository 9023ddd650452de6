// Bounds many short waits without a timer for each. Requests end too often for a timer each.

import type { Clock } from "#kit/time/clock.ts";

/** Bounds waits of the same length without a timer for each. Thousands of requests end every second, and hardly any waits that long. */
export interface Budgets {
  /** The result of `work`, or `otherwise` once the time is over (and up to a tick later). The work goes on. */
  within<T>(work: Promise<T>, otherwise: T): Promise<T>;
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
    within(work, otherwise) {
      return new Promise((resolve, reject) => {
        const wait: Wait = { until: clock.steady() + budgetMs, end: () => resolve(otherwise) };
        waits.add(wait);
        begun();
        work.then(
          (value) => {
            waits.delete(wait);
            resolve(value);
          },
          (error) => {
            waits.delete(wait);
            reject(error);
          },
        );
      });
    },
    tick() {
      const now = clock.steady();
      for (const wait of waits) {
        // The waits are in the order of their times.
        if (wait.until > now) return;
        waits.delete(wait);
        wait.end();
      }
    },
    isIdle: () => waits.size === 0,
  };
}
