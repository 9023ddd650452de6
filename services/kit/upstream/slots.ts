// Bounds the requests that are under way at an upstream to the places that the catalog gives it, and shares them among accounts.

import type { StopSignal } from "#kit/base/stop.ts";
import {
  createFairShare,
  type FairShare,
  type FairShareBounds,
  PlaceUse,
  type Turn,
} from "#kit/share/fair-share.ts";
import { createGiveWay, type GiveWay } from "#kit/share/give-way.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { UpstreamError } from "./errors.ts";
import { heldBackLookMs, heldBackMs } from "./limits.ts";

/** A request for a place. */
export interface SlotRequest {
  /** Name of the resource that is bounded, such as an upstream. */
  name: string;
  /** Places; 0: no bound. */
  max: number;
  /** The account that wants the place. */
  accountId: string;
  /** A longer wait, in ms, is `full`. */
  waitMs: number;
  signal: StopSignal;
}

/** A place that is held until this is disposed of. */
export interface Place extends Turn {
  /**
   * The caller takes nothing from now on, until `used`. Where that lasts while another account waits for a place, `end` is called once.
   * It must give the place back.
   */
  heldBack(end: () => void): void;
  /** The caller takes bytes again. */
  used(): void;
}

/** Bounds the requests under way by name, shared fairly between accounts. */
export interface Slots {
  /** Refuses with RATE_LIMIT_EXCEEDED where too many requests of the account wait. */
  acquire(request: SlotRequest): Promise<Place>;
}

/** Requests of one account that wait for one upstream. Each has a hold meanwhile. */
const waitingEach = 256;

const unbounded: Place = { heldBack() {}, used() {}, [Symbol.dispose]() {} };

interface Shared {
  share: FairShare;
  /** The accounts that ask. One that has been alone for a while may have all places. */
  use: PlaceUse;
  bounds: string;
  /** Ends requests whose callers take nothing. */
  giveWay: GiveWay;
}

/** Makes {@link Slots}, all free. */
export function createSlots(clock: Clock = systemClock): Slots {
  const upstreams = new Map<string, Shared>();
  return {
    async acquire({ name, max, accountId, waitMs, signal }) {
      if (max <= 0) return unbounded;
      const use = upstreams.get(name)?.use ?? new PlaceUse();
      use.note(accountId, clock.steady());
      const each = { places: use.placesOfOne(max, clock.steady()), waiting: waitingEach };
      const bounds = { places: max, each, waitMs };
      const written = JSON.stringify(bounds);
      const shared = upstreams.get(name) ?? createShared(bounds, use, clock);
      upstreams.set(name, shared);
      // The catalog has other bounds, or another account came.
      if (shared.bounds !== written) shared.share.rebound(bounds);
      shared.bounds = written;
      const turn = shared.share.take(accountId, signal);
      shared.giveWay.look();
      return placeOf(await turn, shared.giveWay, accountId, clock);
    },
  };
}

function createShared(bounds: FairShareBounds, use: PlaceUse, clock: Clock): Shared {
  const share = createFairShare(bounds, { late, clock });
  const giveWay = createGiveWay({ share, clock, afterMs: heldBackMs, lookMs: heldBackLookMs });
  return { share, use, bounds: JSON.stringify(bounds), giveWay };
}

function placeOf(turn: Turn, giveWay: GiveWay, accountId: string, clock: Clock): Place {
  let fromMs: number | undefined;
  let onEnd: (() => void) | undefined;
  const holding = giveWay.holds({
    accountId,
    stillMs: () => (fromMs === undefined ? 0 : clock.steady() - fromMs),
    end: () => onEnd?.(),
  });
  return {
    heldBack(end) {
      fromMs = clock.steady();
      onEnd = end;
    },
    used() {
      fromMs = undefined;
    },
    [Symbol.dispose]() {
      holding[Symbol.dispose]();
      turn[Symbol.dispose]();
    },
  };
}

function late(): UpstreamError {
  return new UpstreamError("full");
}
