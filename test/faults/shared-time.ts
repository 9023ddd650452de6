import { type Clock, systemClock } from "#kit/clock.ts";

/** When a fast time began, so that processes of different birth share it. Ms since the epoch. */
export interface FastTime {
  realMs: number;
  fastMs: number;
  /** Fast seconds in a real one. */
  speed: number;
}

/** A clock that runs faster than the machine's: leases end, and sweepers come, while a test waits for them. */
export function fastClock({ realMs, fastMs, speed }: FastTime): Clock {
  return {
    now: () => Math.floor(fastMs + (systemClock.now() - realMs) * speed),
    steady: () => systemClock.steady() * speed,
    sleep: (ms, signal) => systemClock.sleep(ms / speed, signal),
  };
}
