import { lookup as systemLookup } from "node:dns/promises";
import { type Clock, systemClock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { type PeerAddress, peerAddress } from "./peers-dns-address.ts";
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
}

/** Milliseconds between two look-ups: a new pod is used within 5 s, with the 2 s that a resolver may need. */
const resolveIntervalMs = 2_000;
/** Milliseconds between two look-ups at the least, however many connections fail. */
const minResolveIntervalMs = 250;
/** Milliseconds that a call waits for a name's first address. */
const firstAnswerMs = 2_000;
/** Addresses of a name that are used: more replicas of one role than any mesh has. */
const maxAddresses = 1_024;

/**
 * Balances over all addresses of a name: the one with the fewest calls under way, in turn among equals. An address that
 * refuses connections is left out at once and tried again with growing pauses; when all are down they are tried all the
 * same. While DNS fails the last good answer stays.
 */
export function createDnsPeers(options: DnsPeersOptions): DnsPeers {
  const { log, clock = systemClock, lookup = allAddresses, tls } = options;
  const url = new URL(options.url);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const stop = new AbortController();
  const known = new Map<string, PeerAddress>();
  /** Those that vanished from DNS while calls were under way. */
  const former = new Set<PeerAddress>();
  let inTurn: PeerAddress[] = [];
  let turn = 0;
  let nap = new AbortController();
  let answered = Promise.withResolvers<void>();
  let isAsking = false;
  let wasMissing = false;

  const context = {
    url,
    clock,
    log,
    tls: () => (tls ? clientTlsOptions(tls.current()) : undefined),
    onDown: () => nap.abort(),
  };
  const unsubscribe = tls?.onChange(() => {
    for (const address of known.values()) address.renew();
  });

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
  async function resolve(): Promise<void> {
    isAsking = true;
    const answer = await lookup(host).catch((error: NodeJS.ErrnoException) => error);
    isAsking = false;
    if (stop.signal.aborted) return;
    const isMissing = answer instanceof Error || answer.length === 0;
    if (isMissing && !wasMissing) {
      const code = answer instanceof Error ? answer.code : "no address";
      log.warn({ peer: url.host, code }, "a peer's name leads nowhere; its last addresses stay");
    }
    wasMissing = isMissing;
    if (!isMissing) use(answer);
    answered.resolve();
    answered = Promise.withResolvers();
  }
  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      nap = new AbortController();
      await resolve();
      await clock.sleep(minResolveIntervalMs, stop.signal).catch(() => {});
      await clock.sleep(resolveIntervalMs - minResolveIntervalMs, nap.signal).catch(() => {});
    }
  }
  function choose(tried: readonly string[]) {
    const start = turn++;
    let best: PeerAddress | undefined;
    let bestRank = -1;
    for (let i = 0; i < inTurn.length; i++) {
      const one = inTurn[(start + i) % inTurn.length] as PeerAddress;
      // What was tried and still stands is better than what is known to be down.
      const rank = (one.isUp ? 2 : 0) + (tried.includes(one.origin) ? 0 : 1);
      const isBetter =
        rank > bestRank || (rank === bestRank && best && one.outstanding < best.outstanding);
      if (isBetter) [best, bestRank] = [one, rank];
    }
    return best?.take();
  }

  void run();
  return {
    pick(tried) {
      if (inTurn.length > 0 || stop.signal.aborted) return choose(tried);
      const wait = new AbortController();
      const late = clock.sleep(firstAnswerMs, wait.signal).catch(() => {});
      if (!isAsking) nap.abort();
      return Promise.race([answered.promise, late]).then(() => {
        wait.abort();
        return choose(tried);
      });
    },
    addresses: () => inTurn.filter((one) => one.isUp).map((one) => one.origin),
    async [Symbol.asyncDispose]() {
      unsubscribe?.();
      stop.abort();
      nap.abort();
      answered.resolve();
      const all = [...inTurn, ...former];
      inTurn = [];
      await Promise.all(all.map((one) => one.destroy()));
    },
  };
}

async function allAddresses(host: string): Promise<string[]> {
  const found = await systemLookup(host, { all: true });
  return [...new Set(found.map((one) => one.address))];
}
