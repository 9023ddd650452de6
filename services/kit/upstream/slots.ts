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

const unbounded: Turn = { [Symbol.dispose]() {} };

/** Makes {@link Slots}, all free. */
export function createSlots(): Slots {
  const shares = new Map<string, { share: FairShare; max: number; waitMs: number }>();
  return {
    acquire({ name, max, accountId, waitMs, signal }) {
      if (max <= 0) return Promise.resolve(unbounded);
      let found = shares.get(name);
      if (found?.max !== max || found.waitMs !== waitMs) {
        const each = {
          places: Math.max(1, max - Math.ceil(max * leftToOthers)),
          waiting: waitingEach,
        };
        const bounds = { places: max, each, waitMs };
        const share = found?.share ?? createFairShare(bounds, { late });
        // The catalog's bound changed.
        share.rebound(bounds);
        found = { share, max, waitMs };
        shares.set(name, found);
      }
      return found.share.take(accountId, signal);
    },
  };
}

function late(): UpstreamError {
  return new UpstreamError("unreachable", { timedOut: true });
}
