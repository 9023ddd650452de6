import { setTimeout as delay } from "node:timers/promises";

/** The load balancer in front of the gateways. It knows only which of them are ready. */
export interface Balancer extends AsyncDisposable {
  /** Calls `ask` with a ready gateway, in turns. Where no connection could be made, nothing was sent, so it tries the next one. */
  through<T>(ask: (gateway: string) => Promise<T>): Promise<T>;
}

/** Milliseconds between two looks at a gateway, and for one look. */
const [lookEveryMs, lookMs] = [200, 1_000];

/** Begins to look at the gateways. */
export function startBalancer(gateways: readonly string[]): Balancer {
  const ready = new Set(gateways);
  const life = new AbortController();
  const look = async (gateway: string) => {
    while (!life.signal.aborted) {
      const signal = AbortSignal.timeout(lookMs);
      const answer = await fetch(`${gateway}/readyz`, { signal }).catch(() => undefined);
      await answer?.text().catch(() => {});
      if (answer?.ok) ready.add(gateway);
      else ready.delete(gateway);
      await delay(lookEveryMs, undefined, { signal: life.signal }).catch(() => {});
    }
  };
  const looking = gateways.map(look);
  let turn = 0;
  return {
    async through(ask) {
      // Where none is ready, the called one answers why.
      const known = ready.size > 0 ? gateways.filter((one) => ready.has(one)) : gateways;
      const first = turn++ % known.length;
      const others = gateways.filter((one) => one !== known[first]);
      for (const gateway of [known[first] ?? "", ...others]) {
        try {
          return await ask(gateway);
        } catch (error) {
          if (!isRefusedConnection(error)) throw error;
        }
      }
      throw new Error("no gateway listens");
    },
    async [Symbol.asyncDispose]() {
      life.abort();
      await Promise.all(looking);
    },
  };
}

function isRefusedConnection(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: string } };
  return cause?.code === "ECONNREFUSED";
}
