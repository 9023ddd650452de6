import { type GuardedFetcher, OutsideError } from "#kit/outside/index.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { FailPoints } from "../fail-points.ts";
import type { WebhookEvents } from "./events.ts";
import {
  attemptTimeoutMs,
  maxAnswerBytes,
  maxAttempts,
  maxAttemptsEach,
  maxAttemptsToHost,
  maxHostsLookedAt,
} from "./limits.ts";
import { secretsOf } from "./secrets.ts";
import { signedHeaders } from "./sign.ts";
import type { WebhookStore } from "./store.ts";
import { type AttemptResult, hostOf, type Webhook } from "./webhook.ts";

/** What delivering needs. */
export interface DeliverContext {
  clock: Clock;
  store: WebhookStore;
  fetcher: GuardedFetcher;
  events: WebhookEvents;
  failPoints: FailPoints;
}

/** Delivers what is due; each attempt is one process's. */
export interface Deliverer {
  /**
   * Begins attempts until nothing more is due that there is room for: one of each account in turn, so that an account
   * waits for no other's backlog. Does not wait for their ends.
   */
  begin(signal: AbortSignal): Promise<void>;
  /** Resolves with the next end of an attempt: there is room again. */
  freed(): Promise<void>;
  /** Resolves when no attempt is under way. */
  idle(): Promise<void>;
}

/** Makes it. What is under way when `life` aborts is broken off, and begun anew when it counts as lost. */
export function createDeliverer(context: DeliverContext, life: AbortSignal): Deliverer {
  const { clock, store, events } = context;
  const running = new Set<Promise<void>>();
  const ofAccount = createCounts();
  const toHost = createCounts();
  const ofAccountToHost = createCounts();
  /** Of accounts whose longest due webhook is for a host without room: the host that was looked at last. */
  const lookedUpTo = new Map<string, string>();
  /** The account that began the last attempt: who comes behind it has the next room. */
  let lastAccount = "";
  let room = Promise.withResolvers<void>();

  const start = (webhook: Webhook) => {
    const { accountId } = webhook;
    const host = hostOf(webhook);
    ofAccount.add(accountId, 1);
    toHost.add(host, 1);
    ofAccountToHost.add(`${accountId} ${host}`, 1);
    const work = attempt(webhook, context, life)
      // It counts as lost, and is begun anew.
      .catch((error) => {
        if (!life.aborted) events.trouble("a webhook's attempt has no end", error);
      })
      .finally(() => {
        running.delete(work);
        ofAccount.add(accountId, -1);
        toHost.add(host, -1);
        ofAccountToHost.add(`${accountId} ${host}`, -1);
        room.resolve();
        room = Promise.withResolvers<void>();
      });
    running.add(work);
  };
  /** Of a host's places the last one is left to an account that has none there, so that a few with dead receivers take no others' host. */
  const hasRoom = (accountId: string, host: string) => {
    const left = maxAttemptsToHost - toHost.of(host);
    return left > (ofAccountToHost.of(`${accountId} ${host}`) === 0 ? 0 : 1);
  };

  /**
   * Of an account whose longest due webhook is for a host without room: one that is due for another host. Its hosts are looked at
   * in turns of a bounded number, so that neither the backlog of one host nor their number holds up other accounts.
   */
  const dueElsewhere = async (accountId: string, now: number): Promise<string | undefined> => {
    let host = lookedUpTo.get(accountId) ?? "";
    for (let looks = 0; looks < maxHostsLookedAt; looks++) {
      const first = await store.firstOfNextHost(accountId, host);
      if (!first && host === "") return undefined;
      host = first?.host ?? "";
      lookedUpTo.set(accountId, host);
      if (first && first.dueAt <= now && hasRoom(accountId, host)) return first.webhookId;
    }
    return undefined;
  };

  /** One attempt of each account that has one due, from the account behind the last one that began one; was one begun? */
  const turn = async (signal: AbortSignal): Promise<boolean> => {
    const before = lastAccount;
    let accountId = before;
    let isSecondHalf = before === "";
    let hasBegun = false;
    while (running.size < maxAttempts && !signal.aborted) {
      const now = clock.now();
      const due = await store.nextDue(accountId, now);
      if (!due && isSecondHalf) break;
      if (!due) {
        isSecondHalf = true;
        accountId = "";
        continue;
      }
      accountId = due.accountId;
      if (isSecondHalf && before !== "" && accountId > before) break;
      if (ofAccount.of(accountId) >= maxAttemptsEach) continue;
      const isBlocked = !hasRoom(accountId, hostOf(due));
      if (!isBlocked) lookedUpTo.delete(accountId);
      const webhookId = isBlocked ? await dueElsewhere(accountId, now) : due.webhookId;
      const begun = webhookId && (await store.apply(webhookId, { kind: "begin", now }));
      // Otherwise nothing has room, or another process has it.
      if (!begun) continue;
      hasBegun = true;
      lastAccount = accountId;
      start(begun);
    }
    return hasBegun;
  };
  return {
    async begin(signal) {
      while ((await turn(signal)) && running.size < maxAttempts);
    },
    freed: () => room.promise,
    async idle() {
      await Promise.allSettled(running);
    },
  };
}

async function attempt(
  webhook: Webhook,
  context: DeliverContext,
  life: AbortSignal,
): Promise<void> {
  const { clock, store, events, failPoints } = context;
  const result = await send(webhook, context, life);
  failPoints("sent");
  const end = { attempt: webhook.attempts, result, now: clock.now() };
  const ended = await store.apply(webhook.webhookId, { kind: "end", ...end });
  if (ended) events.attempted(ended);
}

async function send(
  { webhookId, accountId, url, body }: Webhook,
  { clock, store, fetcher }: DeliverContext,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const secrets = await secretsOf(accountId, { clock, store });
  const headers = await signedHeaders({ webhookId, body }, secrets, clock.now());
  try {
    const exchange = { body, headers, timeoutMs: attemptTimeoutMs, maxAnswerBytes, signal };
    return { kind: "answered", status: await fetcher.post(url, exchange) };
  } catch (error) {
    // Its kind says nothing of the URL, and is a word of the documentation.
    if (error instanceof OutsideError) return { kind: "unanswered", error: error.kind };
    throw error;
  }
}

function createCounts() {
  const counts = new Map<string, number>();
  return {
    of: (name: string) => counts.get(name) ?? 0,
    add(name: string, by: number) {
      const count = (counts.get(name) ?? 0) + by;
      if (count === 0) counts.delete(name);
      else counts.set(name, count);
    },
  };
}
