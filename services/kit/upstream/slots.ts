import { type Clock, systemClock } from "../clock.ts";
import { createFairShare, type FairShare, type Turn } from "../fair-share.ts";
import { PlaceUse } from "../shared-places.ts";
import { UpstreamError } from "./errors.ts";

/** How a place is waited for. */
export interface SlotRequest {
  /** What is bounded, e.g. an upstream's name. */
  name: string;
  /** Places; 0: no bound. */
  max: number;
  /** For whom. */
  accountId: string;
  /** Waiting longer than this is `unreachable` with `timedOut`. */
  waitMs: number;
  signal: AbortSignal;
}

/** Bounds what is in flight by name, shared fairly between accounts. */
export interface Slots {
  /** Refuses with RATE_LIMIT_EXCEEDED where the account has too many waiting. */
  acquire(request: SlotRequest): Promise<Turn>;
}

/** Requests of one account that wait for one upstream: each has its money held meanwhile. */
const waitingEach = 256;

const unbounded: Turn = { [Symbol.dispose]() {} };

interface Shared {
  share: FairShare;
  bounds: string;
  use: PlaceUse;
}

/** Makes {@link Slots}, all free. */
export function createSlots(clock: Clock = systemClock): Slots {
  const upstreams = new Map<string, Shared>();
  return {
    acquire({ name, max, accountId, waitMs, signal }) {
      if (max <= 0) return Promise.resolve(unbounded);
      const now = clock.steady();
      const known = upstreams.get(name);
      const use = known?.use ?? new PlaceUse();
      use.note(accountId, now);
      const places = use.placesOfOne(max, now);
      const bounds = { places: max, each: { places, waiting: waitingEach }, waitMs };
      const share = known?.share ?? createFairShare(bounds, { late, clock });
      const written = JSON.stringify(bounds);
      // The catalog has other bounds, or the upstream is not one account's alone any more.
      if (known && known.bounds !== written) share.rebound(bounds);
      upstreams.set(name, { share, bounds: written, use });
      return share.take(accountId, signal);
    },
  };
}

function late(): UpstreamError {
  return new UpstreamError("unreachable", { timedOut: true });
}
