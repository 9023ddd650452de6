import { ErrorReason, refuse } from "#kit/errors.ts";

/** Work in flight that several callers may wait for; it is aborted when the last of them has left. */
export interface Flights<T> {
  /**
   * Waits for what is in flight under a name; undefined: nothing is. Refuses with IDEMPOTENCY_KEY_REUSED where it has
   * another fingerprint; rejects as the work does, or with the reason of `signal`.
   */
  join(name: string, fingerprint: string, signal: AbortSignal): Promise<T> | undefined;
  /** Is there something that can be joined? */
  has(name: string): boolean;
  /** Begins work, under a name where others may join it. */
  lead(
    name: { name: string; fingerprint: string } | undefined,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T>;
  /** Aborts all of it. */
  abortAll(reason: unknown): void;
  /** Resolves when nothing is in flight. */
  idle(): Promise<void>;
}

interface Flight<T> {
  fingerprint: string;
  ended: Promise<T>;
  stop: AbortController;
  waiting: number;
}

/** Makes {@link Flights}, none yet. */
export function createFlights<T>(): Flights<T> {
  const running = new Set<Flight<T>>();
  const byName = new Map<string, Flight<T>>();

  const waitFor = async (flight: Flight<T>, signal: AbortSignal): Promise<T> => {
    flight.waiting++;
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([flight.ended, left.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
      if (--flight.waiting === 0) flight.stop.abort(signal.reason);
    }
  };

  const find = (name: string) => {
    const flight = byName.get(name);
    // One that nobody waits for any more is on its way out.
    return flight?.stop.signal.aborted ? undefined : flight;
  };

  return {
    has: (name) => find(name) !== undefined,
    join(name, fingerprint, signal) {
      const flight = find(name);
      if (!flight) return undefined;
      if (flight.fingerprint !== fingerprint) refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
      return waitFor(flight, signal);
    },
    lead(named, signal, work) {
      const stop = new AbortController();
      const flight: Flight<T> = {
        fingerprint: named?.fingerprint ?? "",
        ended: work(stop.signal),
        stop,
        waiting: 0,
      };
      running.add(flight);
      if (named) byName.set(named.name, flight);
      const land = () => {
        running.delete(flight);
        if (named && byName.get(named.name) === flight) byName.delete(named.name);
      };
      flight.ended.then(land, land);
      return waitFor(flight, signal);
    },
    abortAll(reason) {
      for (const flight of running) flight.stop.abort(reason);
    },
    async idle() {
      while (running.size > 0) {
        await Promise.allSettled(Array.from(running, (flight) => flight.ended));
      }
    },
  };
}
