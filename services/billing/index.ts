import type { Service } from "#kit/rpc/service.ts";
import { createAlerts } from "./alerts.ts";
import type { LedgerContext } from "./apply.ts";
import {
  type BillingDeps,
  createAlertStore,
  createLedgerStore,
  createUsageStore,
} from "./context.ts";
import { createBillingEvents } from "./events.ts";
import { createBillingRoutes } from "./routes.ts";
import { createHoldSweeper } from "./sweeper.ts";
import { createCounting } from "./usage-counting.ts";

export { alertsMongoSchema } from "./alert-store-mongo.ts";
export type { BillingDeps } from "./context.ts";
export { ledgerMongoSchema } from "./store-mongo-schema.ts";

/** The billing service: prepaid wallets, holds, and the journal that proves them. */
export function createBilling(deps: BillingDeps): Service {
  const events = createBillingEvents(deps);
  const { clock } = deps;
  const store = createLedgerStore(deps.database, {
    onConflict: ({ unit }) => events.conflict(unit),
  });
  const usage = createUsageStore(deps.database);
  const alertStore = createAlertStore(deps.database);
  const alerts = createAlerts({ store: alertStore, clock, events });
  const counting = createCounting({ store, usage, alerts, clock, events });
  const ledger: LedgerContext = {
    store: {
      ...store,
      async apply(wallet, operations, now) {
        const outcomes = await store.apply(wallet, operations, now);
        counting.note(wallet);
        await alerts.afterApply(wallet, operations, outcomes, now);
        return outcomes;
      },
    },
    clock,
    events,
  };
  const sweeper = createHoldSweeper({ ...ledger, peers: deps.peers });
  const life = new AbortController();
  let running: Promise<unknown> | undefined;

  async function stop(): Promise<void> {
    life.abort();
    await running;
  }
  return {
    name: "billing",
    rpc: [createBillingRoutes({ ...ledger, usage, counting, alerts })],
    async start() {
      await store.open();
      await usage.open();
      await alertStore.open();
      running = Promise.all([
        sweeper.run(life.signal),
        counting.run(life.signal),
        alerts.run(life.signal),
      ]);
    },
    notReady: () => (running ? undefined : "billing: the ledger is not open yet"),
    // Answers go on until the host closes its ports; only the questions of our own stop.
    drain: () => stop(),
    [Symbol.asyncDispose]: stop,
  };
}
