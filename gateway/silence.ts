import type { Clock } from "#kit/time/clock.ts";
import { keepAliveCommentMs, silenceSweepMs } from "./limits.ts";
import { createSweep } from "./sweep.ts";

/** An answer whose silence is measured. */
export interface Silence extends Disposable {
  /** Starts the time again. */
  broken(): void;
}

/** Measures the silence of answers. */
export interface Silences {
  /** Calls `onSilence` after every 15 s without a {@link Silence.broken}, until disposed. */
  watch(onSilence: () => void): Silence;
}

/** Makes it, without an answer. */
export function createSilences(clock: Clock): Silences {
  const open = new Set<{ lastMs: number; onSilence: () => void }>();
  const look = () => {
    // The next look would be too late for those whose time is over by then.
    const dueMs = clock.steady() + silenceSweepMs - keepAliveCommentMs;
    for (const silence of open) {
      if (silence.lastMs >= dueMs) continue;
      silence.lastMs = clock.steady();
      silence.onSilence();
    }
  };
  const sweep = createSweep(clock, open, { everyMs: silenceSweepMs, look });
  return {
    watch(onSilence) {
      const silence = {
        lastMs: clock.steady(),
        onSilence,
        broken() {
          silence.lastMs = clock.steady();
        },
        [Symbol.dispose]: () => void open.delete(silence),
      };
      open.add(silence);
      sweep();
      return silence;
    },
  };
}
