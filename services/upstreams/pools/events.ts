// Counts the tries at upstreams, and shows which of them rest.

import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import type { Outcome } from "./outcomes.ts";

/** Reports what happens to lanes. None of its functions throws. */
export interface PoolEvents {
  /** A try at a lane has ended. */
  tried(lane: string, outcome: Outcome): void;
  /** A lane rests for this long. */
  rests(lane: string, reason: Outcome, ms: number): void;
  /** A request was answered by another lane than its conversation's first. */
  moved(reason: Outcome): void;
  /** An upstream does not accept a key. `key`: the variable or the file that holds it. */
  keyRefused(lane: string, key: string): void;
}

/** Makes the recorder of a process. */
export function createPoolEvents(deps: {
  clock: Clock;
  metrics: Metrics;
  accounts?: UpstreamAccounts | undefined;
}): PoolEvents {
  const { clock, metrics, accounts } = deps;
  const attempts = metrics.counter(
    "genmesh_upstream_attempts_total",
    "Tries at upstreams, of text, speech and beginning jobs, by their outcome.",
    ["lane", "outcome"],
  );
  const resting = metrics.gauge(
    "genmesh_upstream_resting",
    "1 while an upstream, or one key of it, gets no requests because of what it answered.",
    ["lane", "reason"],
  );
  const moved = metrics.counter(
    "genmesh_upstream_moved_total",
    "Requests that were answered by another upstream or key than their conversation's first, by what kept them from it.",
    ["reason"],
  );
  return {
    tried(lane, outcome) {
      attempts.of(lane, outcome).value++;
    },
    rests(lane, reason, ms) {
      const figure = resting.of(lane, reason);
      // Rests may overlap: each counts until its own end.
      const over = () => void figure.value--;
      figure.value++;
      void clock.sleep(ms).then(over);
    },
    moved(reason) {
      moved.of(reason).value++;
    },
    keyRefused: (lane, key) => accounts?.keyRefused(lane, key),
  };
}
