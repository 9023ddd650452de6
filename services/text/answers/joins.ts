// Lets equal requests under one idempotency key share one piece of work while it runs. Afterwards `kept-answer.ts` finds the
// recorded answer.

import type { TextNotes } from "#common/agreements/text-port.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { Stop } from "#kit/base/stop.ts";
import { tooManyAtOnce } from "#kit/share/fair-share.ts";
import { pushed } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import type { Clock } from "#kit/time/clock.ts";
import { maxJoiners, repeatWaitMs } from "../base/limits.ts";
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
  /**
   * The caller is gone, or served. When the last caller leaves, the work that still runs is stopped. A stream goes on for `repeatWaitMs`
   * before that, because its caller may have lost its connection and repeat the request. May be called twice.
   */
  leave(): void;
}

/** Requests with an idempotency key in flight, by a name that equal requests share. */
export interface Joins {
  /**
   * A seat in the flight of this name, or in a new one of the account that `begin` starts. Synchronous up to the registration, so that
   * equal requests cannot miss each other. Refuses with RATE_LIMIT_EXCEEDED where the flight has `maxJoiners`.
   */
  take(name: string, how: { accountId: string; isStream: boolean }, begin: Begin): Seat;
  /** A seat in a flight of this name, if there is one. Refuses like {@link take}. */
  join(name: string): Seat | undefined;
  /** The same for a flight that waits until this one is over. Each form of answer has at most one, so no bound is needed. */
  watch(name: string): Seat | undefined;
}

interface Flight {
  stop: Stop;
  isStream: boolean;
  begun: Promise<Answer>;
  /** Set once a stream has begun. */
  shared: SharedEvents | undefined;
  seats: number;
  /** Present while a stream goes on though its last caller is gone. */
  waiting: { reading: Pick<EventReader, "close"> | undefined; over: AbortController } | undefined;
  /** True where nothing is left to stop. */
  isLanded: boolean;
  /** The kept bytes of its stream. They are kept for the last of its seats, also after the flight has landed. */
  kept: ReplayBytes;
  /** No caller can join it any longer. */
  unname(): void;
}

/** Makes an empty set of flights. */
export function createJoins(
  running: UnderWay<Stop>,
  clock: Pick<Clock, "sleep">,
  room: ReplayRoom = createReplayRoom(),
): Joins {
  const named = new Map<string, Flight>();
  const start = (
    name: string,
    { accountId, isStream }: { accountId: string; isStream: boolean },
    begin: Begin,
  ): Flight => {
    const stop = new Stop();
    const kept = room.open(accountId);
    const unname = () => {
      if (named.get(name) === flight) named.delete(name);
    };
    const land = () => {
      flight.isLanded = true;
      // A repeat that is waited for reads the events themselves, though the stream is over.
      if (!flight.waiting) {
        if (flight.seats === 0) kept.free();
        unname();
      }
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
      if (flight.waiting) flight.waiting.reading = flight.shared.readOn();
      return { ...answer, events };
    });
    begun.catch(land);
    const flight: Flight = {
      ...{ stop, isStream, begun, kept, unname },
      ...{ shared: undefined, seats: 0, waiting: undefined, isLanded: false },
    };
    named.set(name, flight);
    // No request joins a flight that is being stopped. An abandoned stream is no longer read.
    const onStop = () => {
      endWait(flight);
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
    return running.shared && !reader ? undefined : sit(running, true, reader, clock);
  };
  return {
    take(name, how, begin) {
      return join(name) ?? sit(start(name, how, begin), false, undefined, clock);
    },
    join,
    watch,
  };
}

const nothing = pushed<Uint8Array>((sink) => ({
  resume: () => sink.end(),
  leave: () => undefined,
}));

/** The last caller of a stream is gone. The stream goes on for a moment, as if it were read. */
async function waitForRepeat(flight: Flight, clock: Pick<Clock, "sleep">): Promise<void> {
  const over = new AbortController();
  flight.waiting = { reading: flight.shared?.readOn(), over };
  try {
    await clock.sleep(repeatWaitMs, over.signal);
  } catch {
    return;
  }
  endWait(flight);
  finish(flight);
}

/** A caller is there, or the stream is stopped. */
function endWait(flight: Flight): void {
  flight.waiting?.reading?.close();
  flight.waiting?.over.abort();
  flight.waiting = undefined;
}

/** No caller is there any longer, and none is waited for. */
function finish(flight: Flight): void {
  if (flight.isLanded) {
    flight.kept.free();
    flight.unname();
  } else flight.stop.abort(stopped("left"));
}

function sit(
  flight: Flight,
  joined: boolean,
  early: EventReader | undefined,
  clock: Pick<Clock, "sleep">,
): Seat {
  flight.seats++;
  endWait(flight);
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
      const mayRepeat = flight.isStream && !flight.isLanded && !flight.stop.aborted;
      if (mayRepeat) void waitForRepeat(flight, clock);
      else finish(flight);
    },
  };
}
