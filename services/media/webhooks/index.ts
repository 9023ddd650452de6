// Builds webhooks from their parts, and runs announcing, delivering and clearing away in turn. Media's index is its caller.

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
import {
  attemptLeaseMs,
  clearBatch,
  clearIntervalMs,
  lookIntervalMs,
  waitingIntervalMs,
} from "./limits.ts";
import { createWebhookRoutes, type WebhookMethods } from "./routes.ts";
import { createWebhookStore } from "./store-documents.ts";

/** Needs of webhooks. */
export interface WebhooksDeps {
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  database: Database;
  fetcher: GuardedFetcher;
  jobs: JobStore;
  failPoints: FailPoints;
}

/** Sends webhooks about ends of jobs to the addresses that the requests named, at least once each. */
export interface Webhooks extends AsyncDisposable {
  methods: WebhookMethods;
  /** Stores a webhook for the end of a job. */
  announce(job: Job): Promise<void>;
  open(): Promise<void>;
  /** Announces and delivers until `signal` aborts. Attempts may still run then. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Erases some webhooks of an account, and its secrets. True where none was left. */
  eraseAccount(accountId: string): Promise<boolean>;
  /** Resolves when no attempt runs. */
  idle(): Promise<void>;
}

/** Makes the webhooks. Any number of processes may have them at once. */
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
  let countAt = 0;
  const countWaiting = async () => {
    if (clock.steady() < countAt) return;
    countAt = clock.steady() + waitingIntervalMs;
    context.events.waiting(await store.waiting(clock.now()));
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
          // Due webhooks do not wait until all ends are announced.
          isMore = await announceSome(context);
          await deliverer.begin(signal);
          await clear();
          await countWaiting();
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
