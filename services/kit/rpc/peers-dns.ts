import { lookup as systemLookup } from "node:dns/promises";
import type { Logger } from "#kit/base/logger.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { affinityRank } from "./affinity.ts";
import { type PeerAddress, peerAddress } from "./peers-dns-address.ts";
import { followName } from "./peers-dns-name.ts";
import { clientTlsOptions, type TlsSource } from "./tls.ts";
import type { PeerPool } from "./wire-pool.ts";

/** What a pool over the addresses of a name is made of. */
export interface DnsPeersOptions {
  /** `http://HOST:PORT` or `https:`; the host may be an address. */
  url: string;
  log: Logger;
  clock?: Clock;
  /** All addresses of a name, in no order that means anything; default: the system's resolver. */
  lookup?: (host: string) => Promise<readonly string[]>;
  /** For `https:`: the authorities that are trusted and the certificate that is shown; default: the system's, and none. */
  tls?: TlsSource;
}

/** A peer's addresses, found by DNS and found again while the process runs. */
export interface DnsPeers extends PeerPool, AsyncDisposable {
  /** Origins that calls may go to now: `http://ADDRESS:PORT`. */
  addresses(): string[];
  /** How good the best address is for a call that has tried some, to be compared with other pools'; -1: there is none. */
  rank(tried: readonly string[]): number;
}

/** Milliseconds that a call waits for a name's first address, or for others where it reached none. */
const maxAnswerMs = 2_000;
/** Addresses of a name that are used: more replicas of one role than any mesh has. */
const maxAddresses = 1_024;

/**
 * Balances over all addresses of a name: the one with the fewest calls under way, in turn among equals. An address that
 * refuses connections is left out at once and tried again with growing pauses; when all are down they are tried all the
 * same. While DNS fails the last good answer stays. With an affinity it is the most wanted address that is up.
 */
export function createDnsPeers(options: DnsPeersOptions): DnsPeers {
  const { log, clock = systemClock, lookup = allAddresses, tls } = options;
  const url = new URL(options.url);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const known = new Map<string, PeerAddress>();
  /** Those that vanished from DNS while calls were under way. */
  const former = new Set<PeerAddress>();
  let inTurn: PeerAddress[] = [];
  let turn = 0;

  const context = {
    ...{ url, clock, log },
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

/** The one for the next call; looked at from `start` on, so that equals take turns. */
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

/** Higher is better, from 0: what the call has not tried yet, then what stands. What is said to be down may be back. */
function rankOf(one: PeerAddress, tried: readonly string[]): number {
  const standing = one.isUp ? (one.isGoing ? 1 : 2) : 0;
  return standing + (tried.includes(one.origin) ? 0 : 3);
}

async function allAddresses(host: string): Promise<string[]> {
  const found = await systemLookup(host, { all: true });
  return [...new Set(found.map((one) => one.address))];
}
