import type { Begun } from "./generate.ts";
import { type EventReader, type SharedEvents, shareEvents } from "./shared-events.ts";
import { type StopReason, stopped } from "./stopped.ts";

/** What an answer is told with. */
export interface AnswerNotes {
  replayed: boolean;
  /** Properties of the request that were not sent upstream; see `request/parameters.ts`. */
  ignored: readonly string[];
}

/** An answer to one caller. */
export type Answer = AnswerNotes &
  (
    | { kind: "json"; body: Uint8Array }
    /** Bytes of whole events; undefined after the last. */
    | { kind: "events"; next(): Promise<Uint8Array | undefined> }
  );

/** What a flight resolves to. */
export type Begin = (stop: AbortController) => Promise<Begun & AnswerNotes>;

/** A caller's part in a request. */
export interface Seat {
  /** Rejects with the refusal of the request. */
  answer: Promise<Answer>;
  /** True where another caller began it. */
  joined: boolean;
  /** The caller is gone, or served. The last one's leaving stops what still runs. May be called twice. */
  leave(): void;
}

/** Requests in flight, by what makes them equal. */
export interface Joins {
  /**
   * A seat in the flight of this name, or in a new one that `begin` starts. Synchronous up to the registration, so equal
   * requests cannot miss each other. Without a name the request is nobody else's.
   */
  take(name: string | undefined, begin: Begin): Seat;
  /** A seat in a flight of this name, if there is one. */
  join(name: string): Seat | undefined;
  /** Resolves when nothing is in flight. */
  whenEmpty(): Promise<void>;
  /** Stops everything that runs. */
  stopAll(reason: StopReason): void;
}

interface Flight {
  stop: AbortController;
  begun: Promise<Begun & AnswerNotes>;
  /** Set once a stream has begun. */
  shared: SharedEvents | undefined;
  seats: number;
  /** Nothing is left to stop. */
  isLanded: boolean;
}

/** Makes an empty set of flights. */
export function createJoins(): Joins {
  const named = new Map<string, Flight>();
  const all = new Set<Flight>();
  let empty = Promise.withResolvers<void>();
  empty.resolve();

  const start = (name: string | undefined, begin: Begin): Flight => {
    const stop = new AbortController();
    const unname = () => {
      if (name !== undefined && named.get(name) === flight) named.delete(name);
    };
    const land = () => {
      flight.isLanded = true;
      unname();
      all.delete(flight);
      if (all.size === 0) empty.resolve();
    };
    const begun = begin(stop).then((answer) => {
      if (answer.kind === "json") {
        land();
        return answer;
      }
      const passed = (piece: Uint8Array | undefined) => {
        if (!piece) land();
        return piece;
      };
      const pull = () => answer.pull().then(passed);
      if (name !== undefined) flight.shared = shareEvents(pull);
      return { ...answer, pull };
    });
    begun.catch(land);
    const flight: Flight = { stop, begun, shared: undefined, seats: 0, isLanded: false };
    if (all.size === 0) empty = Promise.withResolvers();
    all.add(flight);
    if (name !== undefined) named.set(name, flight);
    // Nobody joins what is being stopped; an abandoned stream is pulled no more.
    const onStop = () => {
      unname();
      void begun.then(land, land);
    };
    stop.signal.addEventListener("abort", onStop, { once: true });
    return flight;
  };
  const join = (name: string): Seat | undefined => {
    const running = named.get(name);
    if (!running) return undefined;
    // Of a stream whose beginning is gone nobody gets a part; its answer will be recorded.
    const reader = running.shared?.read();
    return running.shared && !reader ? undefined : sit(running, true, reader);
  };
  return {
    take(name, begin) {
      const seat = name === undefined ? undefined : join(name);
      return seat ?? sit(start(name, begin), false, undefined);
    },
    join,
    whenEmpty: () => empty.promise,
    stopAll(reason) {
      for (const flight of [...all]) flight.stop.abort(stopped(reason));
    },
  };
}

function sit(flight: Flight, joined: boolean, early: EventReader | undefined): Seat {
  flight.seats++;
  let isLeft = false;
  let reader = early;
  const answer = flight.begun.then((begun): Answer => {
    const notes = { replayed: begun.replayed || joined, ignored: begun.ignored };
    if (begun.kind === "json") return { kind: "json", body: begun.body, ...notes };
    // Nothing was pulled before everybody who waited for the beginning has a reader.
    if (!isLeft) reader ??= flight.shared?.read();
    return { kind: "events", next: reader?.next ?? begun.pull, ...notes };
  });
  // Whoever left does not hear of the refusal.
  answer.catch(() => {});
  return {
    answer,
    joined,
    leave() {
      if (isLeft) return;
      isLeft = true;
      reader?.close();
      if (--flight.seats === 0 && !flight.isLanded) flight.stop.abort(stopped("left"));
    },
  };
}
