// Chooses the replica for each internal call, among all addresses that DNS has for a peer's name. A peer with one fixed address
// has the pool of `wire-pool.ts`.

import { lookup as systemLookup } from "node:dns/promises";
import type { Logger } from "#kit/base/logger.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { affinityRank } from "./affinity.ts";
import { type PeerAddress, peerAddress } from "./peers-dns-address.ts";
import { followName } from "./peers-dns-name.ts";
import { clientTlsOptions, type TlsSource } from "./tls.ts";
import type { PeerPool } from "./wire-pool.ts";

/** Options of a pool over the addresses of a name. */
export interface DnsPeersOptions {
  /** `http://HOST:PORT` or `https:`. The host may be an address. */
  url: string;
  log: Logger;
  clock?: Clock;
  /** All addresses of a name, in an order without meaning. Default: the system's resolver. */
  lookup?: (host: string) => Promise<readonly string[]>;
  /** For `https:`: the trusted authorities and the certificate to show. Default: the system's authorities, and no certificate. */
  tls?: TlsSource;
  /** Do short calls to an address share a connection, where the peer knows that? Default: no. */
  frames?: boolean;
}

/** A peer's addresses, which DNS is asked for again and again while the process runs. */
export interface DnsPeers extends PeerPool, AsyncDisposable {
  /** Origins that calls may go to now: `http://ADDRESS:PORT`. */
  addresses(): string[];
  /** The rank of the best address for a call that has tried some. The ranks of several pools are compared. -1: there is no address. */
  rank(tried: readonly string[]): number;
}

/** Milliseconds that a call waits for a name's first address, or for others where it reached none. */
const maxAnswerMs = 2_000;
/** Addresses of a name that are used. That is more replicas of one role than any mesh has. */
const maxAddresses = 1_024;

/**
 * Balances over all addresses of a name. The one with the fewest calls under way is used, and equals take turns. An address that
 * refuses connections is left out at once and tried again with growing pauses. When all are down, they are still tried. While DNS
 * fails, the last good answer stays in use. With an affinity, the most wanted address that is up is used.
 */
export function createDnsPeers(options: DnsPeersOptions): DnsPeers {
  const { log, clock = systemClock, lookup = allAddresses, tls } = options;
  const url = new URL(options.url);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const known = new Map<string, PeerAddress>();
  /** Addresses that vanished from DNS while calls were under way. */
  const former = new Set<PeerAddress>();
  let inTurn: PeerAddress[] = [];
  let turn = 0;

  const context = {
    ...{ url, clock, log, frames: options.frames ?? false },
    tls: () => (tls ? clientTlsOptions(tls.current()) : undefined),
    onDown: () => name.soon(),
  };
  function use(answer: readonly string[]): void {
    const wanted = new Set(answer.slice(0, maxAddresses));
    for (const [address, peer] of known) {
      if (wanted.has(address)) continue;
      known.delete(address);
      peer.retire();
      former.add(peer);
    }
    for (const peer of former) if (peer.outstanding === 0) former.delete(peer);
    for (const address of wanted) {
      if (!known.has(address)) known.set(address, peerAddress(address, context));
    }
    inTurn = [...known.values()];
  }
  const name = followName({ ...{ host, lookup, clock, log }, onAnswer: use });
  const unsubscribe = tls?.onChange(() => {
    for (const address of inTurn) address.renew();
  });
  const choose = (tried: readonly string[], affinity: string | undefined) =>
    best(inTurn, { start: turn++, tried, affinity })?.take();
  const orLate = async (answered: Promise<void>) => {
    const wait = new AbortController();
    const late = clock.sleep(maxAnswerMs, wait.signal).catch(() => {});
    await Promise.race([answered, late]);
    wait.abort();
  };
  return {
    pick(tried, affinity) {
      if (inTurn.length > 0) return choose(tried, affinity);
      return orLate(name.answered()).then(() => choose(tried, affinity));
    },
    lookAgain: () => orLate(name.lookedUp()),
    addresses: () => inTurn.filter((one) => one.isUp).map((one) => one.origin),
    rank: (tried) => Math.max(-1, ...inTurn.map((one) => rankOf(one, tried))),
    async [Symbol.asyncDispose]() {
      unsubscribe?.();
      name.stop();
      const all = [...inTurn, ...former];
      inTurn = [];
      await Promise.all(all.map((one) => one.destroy()));
    },
  };
}

/** The address for the next call. The search begins at `start`, so that equals take turns. */
function best(
  addresses: readonly PeerAddress[],
  {
    start,
    tried,
    affinity,
  }: { start: number; tried: readonly string[]; affinity: string | undefined },
): PeerAddress | undefined {
  const costOf = (one: PeerAddress) =>
    affinity === undefined ? one.outstanding : -affinityRank(affinity, one.origin);
  let found: PeerAddress | undefined;
  let foundRank = -1;
  for (let i = 0; i < addresses.length; i++) {
    const one = addresses[(start + i) % addresses.length] as PeerAddress;
    const rank = rankOf(one, tried);
    const isBetter = found !== undefined && rank === foundRank && costOf(one) < costOf(found);
    if (rank > foundRank || isBetter) [found, foundRank] = [one, rank];
  }
  return found;
}

/**
 * Higher is better, from 0. An address that the call has not tried comes first, then one that is up. One that counts as down may be
 * back.
 */
function rankOf(one: PeerAddress, tried: readonly string[]): number {
  const standing = one.isUp ? (one.isGoing ? 1 : 2) : 0;
  return standing + (tried.includes(one.origin) ? 0 : 3);
}

async function allAddresses(host: string): Promise<string[]> {
  const found = await systemLookup(host, { all: true });
  return [...new Set(found.map((one) => one.address))];
}
