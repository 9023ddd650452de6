import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Database } from "#kit/store/database.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createBringForward } from "#kit/time/lease-time.ts";
import type { FailPoints } from "../fail-points.ts";
import type { Job } from "../jobs/job.ts";
import type { JobStore } from "../jobs/store.ts";
import { announce, announceSome } from "./announce.ts";
import { createDeliverer } from "./deliver.ts";
import { createWebhookEvents } from "./events.ts";
import { attemptLeaseMs, clearBatch, clearIntervalMs, lookIntervalMs } from "./limits.ts";
import { createWebhookRoutes, type WebhookMethods } from "./routes.ts";
import { createWebhookStore } from "./store-documents.ts";

/** What webhooks need. */
export interface WebhooksDeps {
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  database: Database;
  fetcher: GuardedFetcher;
  jobs: JobStore;
  failPoints: FailPoints;
}

/** Tells the ends of jobs to the addresses that their submissions named, at least once each. */
export interface Webhooks extends AsyncDisposable {
  methods: WebhookMethods;
  /** Writes the end of a job down, for delivery. */
  announce(job: Job): Promise<void>;
  open(): Promise<void>;
  /** Announces and delivers until `signal` aborts; attempts may still be under way then. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Erases some of an account's webhooks, and its secrets; true: none was left. */
  eraseAccount(accountId: string): Promise<boolean>;
  /** Resolves when no attempt is under way. */
  idle(): Promise<void>;
}

/** Makes them; any number of processes may have them at once. */
export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const { clock } = deps;
  const store = createWebhookStore(deps.database);
  const context = { ...deps, store, events: createWebhookEvents(deps) };
  const life = new AbortController();
  const deliverer = createDeliverer(context, life.signal);
  const bringForward = createBringForward(clock, attemptLeaseMs, store);
  let clearAt = 0;
  const clear = async () => {
    if (clock.steady() < clearAt) return;
    clearAt = clock.steady() + clearIntervalMs;
    await store.clear(clock.now(), clearBatch);
  };
  return {
    async eraseAccount(accountId) {
      return (await store.eraseAccount(accountId, clearBatch)) === 0;
    },
    methods: createWebhookRoutes(context),
    announce: (job) => announce(job, context),
    open: () => store.open(),
    async run(signal) {
      while (!signal.aborted) {
        const woken = deliverer.freed();
        let isMore = false;
        try {
          await bringForward();
          // What is due does not wait for all that is to be announced.
          isMore = await announceSome(context);
          await deliverer.begin(signal);
          await clear();
        } catch (error) {
          context.events.trouble("webhooks could not be looked at", error);
        }
        if (isMore) continue;
        const rest = new AbortController();
        const until = AbortSignal.any([signal, rest.signal]);
        await Promise.race([clock.sleep(lookIntervalMs, until).catch(() => {}), woken]);
        rest.abort();
      }
    },
    idle: () => deliverer.idle(),
    async [Symbol.asyncDispose]() {
      life.abort();
      await deliverer.idle();
    },
  };
}
