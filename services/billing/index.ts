import type { Service } from "#kit/rpc/service.ts";
import type { LedgerContext } from "./apply.ts";
import { type BillingDeps, createLedgerStore } from "./context.ts";
import { createBillingEvents } from "./events.ts";
import { createReaper } from "./reaper.ts";
import { createBillingRoutes } from "./routes.ts";

export type { BillingDeps } from "./context.ts";
export { ledgerMongoSchema } from "./store-mongo-schema.ts";

/** The billing service: prepaid wallets, holds, and the journal that proves them. */
export function createBilling(deps: BillingDeps): Service {
  const events = createBillingEvents(deps);
  const ledger: LedgerContext = {
    store: createLedgerStore(deps.database, { onConflict: ({ unit }) => events.conflict(unit) }),
    clock: deps.clock,
    events,
  };
  const reaper = createReaper({ ...ledger, peers: deps.peers });
  const life = new AbortController();
  let reaping: Promise<void> | undefined;

  async function stop(): Promise<void> {
    life.abort();
    await reaping;
  }
  return {
    name: "billing",
    rpc: [createBillingRoutes(ledger)],
    async start() {
      await ledger.store.open();
      reaping = reaper.run(life.signal);
    },
    notReady: () => (reaping ? undefined : "billing: the ledger is not open yet"),
    // Answers go on until the host closes its ports; only the questions of our own stop.
    drain: () => stop(),
    [Symbol.asyncDispose]: stop,
  };
}
