// Lets several callers wait for one piece of work in this process: repeats of a speech request join the one that is under way.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { LiveSound } from "./live-sound.ts";

/** The view that work in flight has of itself. */
export interface Flight {
  /** Aborts when the last caller has left before {@link Flight.keep}, and when the process stops. */
  readonly signal: AbortSignal;
  /** From this call on the work runs to its end, even if no caller waits for it. */
  keep(): void;
}

/** A caller's place in a flight. */
export interface Boarded<T> {
  /** Rejects like the work, or with the reason of the caller's signal. */
  ended: Promise<T>;
  /** The audio of the work. Undefined: no one listens to it. */
  sound: LiveSound | undefined;
}

/** Work in flight for which several callers may wait. Unless it is kept, it is aborted when the last of them has left. */
export interface Flights<T> {
  /**
   * Waits for the work in flight under a name. Undefined where there is none. Refuses with IDEMPOTENCY_KEY_REUSED where the work has
   * another fingerprint.
   */
  join(name: string, fingerprint: string, signal: AbortSignal): Boarded<T> | undefined;
  /** Is there work that a caller can join? */
  has(name: string): boolean;
  /** Begins work. Other callers can join it where it has a name. Its audio ends before it. */
  lead(
    named: { name: string; fingerprint: string } | undefined,
    signal: AbortSignal,
    work: (flight: Flight) => Promise<T>,
    sound?: LiveSound,
  ): Boarded<T>;
  /** Aborts all work, kept or not. */
  abortAll(reason: unknown): void;
  /** Resolves when nothing is in flight. */
  idle(): Promise<void>;
}

interface Running<T> {
  fingerprint: string;
  ended: Promise<T>;
  sound: LiveSound | undefined;
  stop: AbortController;
  isKept: boolean;
  waiting: number;
}

/** Makes {@link Flights}, empty at first. */
export function createFlights<T>(): Flights<T> {
  const running = new Set<Running<T>>();
  const byName = new Map<string, Running<T>>();

  const waitFor = async (flight: Running<T>, signal: AbortSignal): Promise<T> => {
    flight.waiting++;
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([flight.ended, left.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
      if (--flight.waiting === 0 && !flight.isKept) flight.stop.abort(signal.reason);
    }
  };

  const board = (flight: Running<T>, signal: AbortSignal): Boarded<T> => {
    const ended = waitFor(flight, signal);
    // A listener looks at the end behind the audio.
    ended.catch(() => {});
    return { ended, sound: flight.sound };
  };

  const find = (name: string) => {
    const flight = byName.get(name);
    // An aborted flight is about to end, so no caller joins it.
    return flight?.stop.signal.aborted ? undefined : flight;
  };

  return {
    has: (name) => find(name) !== undefined,
    join(name, fingerprint, signal) {
      const flight = find(name);
      if (!flight) return undefined;
      if (flight.fingerprint !== fingerprint) refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
      return board(flight, signal);
    },
    lead(named, signal, work, sound) {
      const stop = new AbortController();
      const begun = Promise.withResolvers<T>();
      const flight: Running<T> = {
        fingerprint: named?.fingerprint ?? "",
        ended: begun.promise.finally(() => sound?.end()),
        sound,
        stop,
        isKept: false,
        waiting: 0,
      };
      const keep = () => {
        flight.isKept = true;
      };
      begun.resolve(work({ signal: stop.signal, keep }));
      running.add(flight);
      if (named) byName.set(named.name, flight);
      const land = () => {
        running.delete(flight);
        if (named && byName.get(named.name) === flight) byName.delete(named.name);
      };
      flight.ended.then(land, land);
      return board(flight, signal);
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
