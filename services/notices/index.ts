// Runs notices in a process: writes down what it sees, and sends what is due, every ten seconds. The host makes one for each
// process. `conditions.ts` sees, and `way.ts` decides what is due.

import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Service } from "#kit/rpc/service.ts";
import type { Database } from "#kit/store/database.ts";
import { createConditions, type Observed } from "./conditions.ts";
import { createAlertEvents } from "./events.ts";
import { lookMs, maxSeen } from "./limits.ts";
import { written } from "./message.ts";
import { createNoticeMethods, type NoticeMethods } from "./routes.ts";
import { type AlertWays, createSenders, type Send } from "./senders.ts";
import { createNoticeStore } from "./store.ts";
import { attemptBegun, attemptEnded, type WayName } from "./way.ts";

export type { AlertWays, MailConfig } from "./senders.ts";
export { noticesComponent } from "./store.ts";

/** Needs of notices. */
export interface NoticesDeps extends Observed {
  log: Logger;
  ids: Ids;
  database: Database;
  /** The ways by which this process tells the operator. None: other processes do, or none does. */
  ways: AlertWays;
}

/**
 * The operator's notices. Each process writes down the conditions that it sees. Processes with ways send them to the operator. A store or
 * a receiver that is away holds up nothing else.
 */
export interface Notices extends Service {
  methods: NoticeMethods;
}

/** Makes them. They look from the start until they are drained. */
export function createNotices(deps: NoticesDeps): Notices {
  const { clock } = deps;
  const store = createNoticeStore(deps.database);
  const events = createAlertEvents(deps);
  const senders = createSenders(deps.ways);
  const conditions = createConditions(deps);
  const life = new AbortController();
  const { signal } = life;
  let running: Promise<unknown> = Promise.resolve();

  const again = async (what: string, step: () => Promise<void>) => {
    while (!signal.aborted) {
      await step().catch((error) => events.trouble(what, error));
      await clock.sleep(lookMs, signal).catch(() => {});
    }
  };
  const observe = async () => {
    const now = clock.now();
    for (const condition of (await conditions()).slice(0, maxSeen)) await store.see(condition, now);
  };
  const tell = async (way: WayName, send: Send) => {
    const lasting = await store.lasting(clock.now());
    const begun = await store.stepWay(way, (is) => attemptBegun(is, lasting, clock.now()));
    if (!begun?.sending) return;
    const { messageId } = begun.sending;
    const end = await send(written(begun.sending), clock.now(), signal);
    // The attempt then counts as lost, and is made again.
    if (signal.aborted && !end.isDelivered) return;
    events.attempted(way, end);
    await store.stepWay(way, (is) => attemptEnded(is, messageId, end, clock.now()));
  };
  const stop = async () => {
    life.abort();
    await running;
  };
  return {
    name: "notices",
    rpc: [],
    methods: createNoticeMethods({ ...deps, store, senders, events }),
    async start() {
      await store.open();
      const loops = [again("notices could not be written down", observe)];
      for (const [way, send] of senders) {
        loops.push(again("the operator could not be told", () => tell(way, send)));
      }
      if (senders.size > 0) {
        loops.push(again("old notices stay", () => store.forget(clock.now())));
      }
      running = Promise.all(loops);
    },
    notReady: () => undefined,
    drain: stop,
    [Symbol.asyncDispose]: stop,
  };
}
