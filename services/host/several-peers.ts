// Chooses among several URLs of one peer. Most peers have one URL, and do without this.

import { affinityRank } from "#kit/rpc/affinity.ts";
import type { DnsPeers } from "#kit/rpc/peers-dns.ts";
import type { CallOutcome, PeerPool, PickedPeer } from "#kit/rpc/wire-pool.ts";

/** The part of a pool that the choice among several needs. */
export type OneOfSeveral = Pick<DnsPeers, "pick" | "addresses" | "rank" | "lookAgain">;

interface Choice {
  pool: OneOfSeveral;
  /** Calls under way. */
  outstanding: number;
}

/**
 * One pool over several, for a peer with more than one URL. It uses the pool with the fewest calls under way, and equals take turns.
 * With an affinity it uses the pool with the most wanted address. A pool without an address that answers, or whose addresses were all
 * tried, is used only where there is no other.
 */
export function severalPeers(pools: readonly OneOfSeveral[]): PeerPool {
  const choices = pools.map((pool): Choice => ({ pool, outstanding: 0 }));
  let turn = 0;
  return {
    async pick(tried, affinity) {
      const start = turn++;
      const inTurn = choices.map((_, i) => choices[(start + i) % choices.length] as Choice);
      const [best] = inTurn
        .map((choice) => ({
          choice,
          rank: choice.pool.rank(tried),
          cost: affinity === undefined ? choice.outstanding : -wantOf(choice, tried, affinity),
        }))
        .sort((a, b) => b.rank - a.rank || a.cost - b.cost);
      if (!best) return undefined;
      const picked = await best.choice.pool.pick(tried, affinity);
      return picked && counted(picked, best.choice);
    },
    async lookAgain() {
      await Promise.all(pools.map((pool) => pool.lookAgain?.()));
    },
  };
}

/** How much the best of a pool's untried addresses is wanted. */
function wantOf({ pool }: Choice, tried: readonly string[], affinity: string): number {
  const left = pool.addresses().filter((origin) => !tried.includes(origin));
  return Math.max(0, ...left.map((origin) => affinityRank(affinity, origin)));
}

function counted(picked: PickedPeer, choice: Choice): PickedPeer {
  choice.outstanding++;
  return {
    // Read for each attempt, since connections may be renewed before it begins.
    get dispatcher() {
      return picked.dispatcher;
    },
    origin: picked.origin,
    going: () => picked.going(),
    done(outcome: CallOutcome) {
      choice.outstanding--;
      picked.done(outcome);
    },
  };
}
