import { ErrorReason, refuse } from "#kit/errors.ts";
import { busyRetryMs } from "./limits.ts";

/** Bounds how much of something goes on at once. */
export interface Gate {
  /** Runs `work` once there is room. Rejects with the signal's reason while it waits, or refuses where too many do. */
  run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** Bounds of a gate. */
export interface GateOptions {
  /** At once, in all. */
  most: number;
  /** At once, of one key. */
  mostEach: number;
  /** That wait; the next is refused with SERVICE_UNAVAILABLE. */
  maxWaiting: number;
}

interface Waiting {
  key: string;
  enter: () => void;
}

/** First come, first served, but nobody waits for a key's own bound other than that key. */
export function createGate({ most, mostEach, maxWaiting }: GateOptions): Gate {
  const running = new Map<string, number>();
  const waiting = new Set<Waiting>();
  let total = 0;

  const hasRoom = (key: string) => total < most && (running.get(key) ?? 0) < mostEach;
  const count = (key: string, change: 1 | -1) => {
    total += change;
    const left = (running.get(key) ?? 0) + change;
    if (left > 0) running.set(key, left);
    else running.delete(key);
  };
  const advance = () => {
    for (const one of waiting) {
      if (total >= most) return;
      if (!hasRoom(one.key)) continue;
      waiting.delete(one);
      count(one.key, 1);
      one.enter();
    }
  };
  const turn = (key: string, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        // Whoever was let in at the same moment has its place and will find the signal itself.
        if (waiting.delete(one)) reject(signal.reason);
      };
      const one: Waiting = {
        key,
        enter: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      waiting.add(one);
      signal.addEventListener("abort", leave, { once: true });
    });

  return {
    async run(key, signal, work) {
      signal.throwIfAborted();
      if (hasRoom(key)) count(key, 1);
      else if (waiting.size >= maxWaiting) {
        refuse(ErrorReason.SERVICE_UNAVAILABLE, {
          metadata: { retry_after_ms: String(busyRetryMs) },
        });
      } else await turn(key, signal);
      try {
        return await work();
      } finally {
        count(key, -1);
        advance();
      }
    },
  };
}
