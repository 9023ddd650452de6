// Looks up the addresses of a host that a caller named. `fetcher.ts` checks them before it connects.

import { lookup, Resolver } from "node:dns/promises";

/** One answer of a name server. `address` is IPv4 or IPv6 text. */
export type ResolvedAddress = { readonly address: string; readonly family: number };

/** All addresses of a name. Rejects, or gives none, where none exist. */
export type Resolve = (host: string, signal?: AbortSignal) => Promise<readonly ResolvedAddress[]>;

// Two tries of 2 s leave time for the fetch itself.
const queryTimeoutMs = 2000;
const queryTries = 2;

/**
 * Asks name servers over the network, by default the configured ones. Unlike `getaddrinfo` it can be cancelled. It also uses none of
 * the two threads that all look-ups of the process share. An attacker's slow name server would hold those. It ignores the hosts file
 * and search domains, whose names are not public anyway. Where one family fails, the other's answer counts.
 */
export function resolveByQuery(servers?: readonly string[]): Resolve {
  return async (host, signal) => {
    const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queryTries });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const queries = [resolver.resolve6(host), resolver.resolve4(host)];
      const [v6, v4] = await Promise.allSettled(queries);
      if (v4?.status === "rejected" && v6?.status === "rejected") throw v4.reason;
      return [
        ...(v6?.status === "fulfilled" ? v6.value : []).map((address) => ({ address, family: 6 })),
        ...(v4?.status === "fulfilled" ? v4.value : []).map((address) => ({ address, family: 4 })),
      ];
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  };
}

/** Asks the operating system, hosts file and search domains included. For development. */
export const resolveBySystem: Resolve = (host) => lookup(host, { all: true, order: "verbatim" });
