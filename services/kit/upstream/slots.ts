import { type Clock, systemClock } from "../clock.ts";
import { createFairShare, type FairShare, type Turn } from "../fair-share.ts";
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
/**
 * Part of the places that one account leaves to the others, at least one place where there are two: readers that take
 * nothing keep their places until they are cut off, and they may be all of one account.
 */
const leftToOthers = 0.25;
/**
 * An account that alone has used an upstream for this long, in ms, may have all of its places: where one team is all that
 * there is, nothing is kept free for others.
 */
const aloneMs = 15 * 60_000;

const unbounded: Turn = { [Symbol.dispose]() {} };

interface Shared {
  share: FairShare;
  bounds: string;
  /** The account that asked last, and when another one did before it. */
  lastAccountId: string;
  otherAtMs: number;
}

/** Makes {@link Slots}, all free. */
export function createSlots(clock: Clock = systemClock): Slots {
  const upstreams = new Map<string, Shared>();
  return {
    acquire({ name, max, accountId, waitMs, signal }) {
      if (max <= 0) return Promise.resolve(unbounded);
      const now = clock.steady();
      const known = upstreams.get(name);
      const isOther = known !== undefined && known.lastAccountId !== accountId;
      const otherAtMs = isOther ? now : (known?.otherAtMs ?? Number.NEGATIVE_INFINITY);
      const isShared = now - otherAtMs < aloneMs;
      const places = isShared ? Math.max(1, max - Math.ceil(max * leftToOthers)) : max;
      const bounds = { places: max, each: { places, waiting: waitingEach }, waitMs };
      const share = known?.share ?? createFairShare(bounds, { late, clock });
      const written = JSON.stringify(bounds);
      // The catalog has other bounds, or the upstream is not one account's alone any more.
      if (known && known.bounds !== written) share.rebound(bounds);
      upstreams.set(name, { share, bounds: written, lastAccountId: accountId, otherAtMs });
      return share.take(accountId, signal);
    },
  };
}

function late(): UpstreamError {
  return new UpstreamError("unreachable", { timedOut: true });
}
