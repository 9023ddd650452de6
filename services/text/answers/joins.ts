import type { TextNotes } from "#common/agreements/text-port.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { Stop } from "#kit/base/stop.ts";
import { tooManyAtOnce } from "#kit/share/fair-share.ts";
import { pushed } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import { maxJoiners } from "../base/limits.ts";
import type { UnderWay } from "../base/under-way.ts";
import { createReplayRoom, type ReplayBytes, type ReplayRoom } from "./replay-room.ts";
import type { Begun } from "./sending.ts";
import { type EventReader, type SharedEvents, shareEvents } from "./shared-events.ts";
import { asRefusal, stopped } from "./stop-reason.ts";

/** An answer to one caller. */
export type Answer = Begun & TextNotes;

/** Makes the answer to which a flight resolves. */
export type Begin = (stop: Stop) => Awaitable<Answer>;

/** A caller's part in a request. */
export interface Seat {
  /** Rejects with the refusal of the request. */
  answer: Promise<Answer>;
  /** True where another caller began the request. */
  joined: boolean;
  /** The caller is gone, or served. When the last caller leaves, the work that still runs is stopped. May be called twice. */
  leave(): void;
}

/** Requests with an idempotency key in flight, by a name that equal requests share. */
export interface Joins {
  /**
   * A seat in the flight of this name, or in a new one of the account that `begin` starts. Synchronous up to the registration, so that
   * equal requests cannot miss each other. Refuses with RATE_LIMIT_EXCEEDED where the flight has `maxJoiners`.
   */
  take(name: string, accountId: string, begin: Begin): Seat;
  /** A seat in a flight of this name, if there is one. Refuses like {@link take}. */
  join(name: string): Seat | undefined;
  /** The same for a flight that waits until this one is over. Each form of answer has at most one, so no bound is needed. */
  watch(name: string): Seat | undefined;
}

interface Flight {
  stop: Stop;
  begun: Promise<Answer>;
  /** Set once a stream has begun. */
  shared: SharedEvents | undefined;
  seats: number;
  /** True where nothing is left to stop. */
  isLanded: boolean;
  /** The kept bytes of its stream. They are kept for the last of its seats, also after the flight has landed. */
  kept: ReplayBytes;
}

/** Makes an empty set of flights. */
export function createJoins(running: UnderWay<Stop>, room: ReplayRoom = createReplayRoom()): Joins {
  const named = new Map<string, Flight>();
  const start = (name: string, accountId: string, begin: Begin): Flight => {
    const stop = new Stop();
    const kept = room.open(accountId);
    const unname = () => {
      if (named.get(name) === flight) named.delete(name);
    };
    const land = () => {
      flight.isLanded = true;
      if (flight.seats === 0) kept.free();
      unname();
      running.ended(stop);
    };
    running.began(stop);
    const answered = Promise.resolve(begin(stop)).catch((error) => {
      throw asRefusal(error, stop);
    });
    const begun = answered.then((answer) => {
      if (answer.kind === "json") {
        land();
        return answer;
      }
      const fail = (error: unknown) => {
        land();
        return error;
      };
      const events = staged(answer.events, { end: land, fail });
      flight.shared = shareEvents(events, { room: kept });
      return { ...answer, events };
    });
    begun.catch(land);
    const flight: Flight = { stop, begun, shared: undefined, seats: 0, isLanded: false, kept };
    named.set(name, flight);
    // No request joins a flight that is being stopped. An abandoned stream is no longer read.
    const onStop = () => {
      unname();
      void begun.then(land, land);
    };
    stop.addEventListener("abort", onStop);
    return flight;
  };
  const join = (name: string): Seat | undefined => {
    // The caller that began the request has a seat of its own.
    if ((named.get(name)?.seats ?? 0) > maxJoiners) throw tooManyAtOnce();
    return watch(name);
  };
  const watch = (name: string): Seat | undefined => {
    const running = named.get(name);
    if (!running) return undefined;
    // Where the beginning of a stream is gone, no caller can join it. Its answer will be recorded.
    const reader = running.shared?.read();
    return running.shared && !reader ? undefined : sit(running, true, reader);
  };
  return {
    take(name, accountId, begin) {
      return join(name) ?? sit(start(name, accountId, begin), false, undefined);
    },
    join,
    watch,
  };
}

const nothing = pushed<Uint8Array>((sink) => ({
  resume: () => sink.end(),
  leave: () => undefined,
}));

function sit(flight: Flight, joined: boolean, early: EventReader | undefined): Seat {
  flight.seats++;
  let isLeft = false;
  let reader = early;
  let room: Disposable | undefined;
  const answer = flight.begun.then((begun): Answer => {
    const told = { ...begun, replayed: begun.replayed || joined };
    if (told.kind === "json") {
      // A caller that joined gets the same bytes. Their room belongs to the request that began them.
      if (joined) return { ...told, room: undefined };
      if (isLeft) told.room?.[Symbol.dispose]();
      else room = told.room;
      return told;
    }
    // Nothing is read until every caller that waited for the beginning has a reader.
    if (!isLeft) reader ??= flight.shared?.read();
    // A caller that has left must not read instead of the others.
    const rest = flight.shared ? nothing : told.events;
    return { ...told, events: reader?.events ?? rest };
  });
  // A caller that joined and left does not get the refusal.
  answer.catch(() => {});
  return {
    answer,
    joined,
    leave() {
      if (isLeft) return;
      isLeft = true;
      reader?.close();
      room?.[Symbol.dispose]();
      if (--flight.seats > 0) return;
      if (flight.isLanded) flight.kept.free();
      else flight.stop.abort(stopped("left"));
    },
  };
}
