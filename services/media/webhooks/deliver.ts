// Sends webhooks that are due to their receivers, several at once, and shares the attempts among accounts and hosts.

import { type GuardedFetcher, OutsideError } from "#kit/outside/index.ts";
import { signedHeaders } from "#kit/outside/signed.ts";
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
import { validSecrets } from "./sign.ts";
import type { WebhookStore } from "./store.ts";
import { type AttemptResult, hostOf, type Webhook } from "./webhook.ts";

/** Needs of delivering. */
export interface DeliverContext {
  clock: Clock;
  store: WebhookStore;
  fetcher: GuardedFetcher;
  events: WebhookEvents;
  failPoints: FailPoints;
}

/** Delivers the webhooks that are due. One process makes each attempt. */
export interface Deliverer {
  /**
   * Begins attempts until nothing is due for which there is room. Each account has one attempt in turn, so that no account waits
   * for another's backlog. Does not wait for the attempts' ends.
   */
  begin(signal: AbortSignal): Promise<void>;
  /** Resolves at the next end of an attempt, when there is room again. */
  freed(): Promise<void>;
  /** Resolves when no attempt is under way. */
  idle(): Promise<void>;
}

/** Makes the deliverer. An attempt that runs when `life` aborts is stopped. It begins again when it counts as lost. */
export function createDeliverer(context: DeliverContext, life: AbortSignal): Deliverer {
  const { clock, store, events } = context;
  const running = new Set<Promise<void>>();
  const ofAccount = createCounts();
  const toHost = createCounts();
  const ofAccountToHost = createCounts();
  /** For each account whose longest due webhook is for a host without room: the last host that was looked at. */
  const lookedUpTo = new Map<string, string>();
  /** The account that began the last attempt. The accounts after it have the next room. */
  let lastAccount = "";
  let room = Promise.withResolvers<void>();

  const start = (webhook: Webhook) => {
    const { accountId } = webhook;
    const host = hostOf(webhook);
    ofAccount.add(accountId, 1);
    toHost.add(host, 1);
    ofAccountToHost.add(`${accountId} ${host}`, 1);
    const work = attempt(webhook, context, life)
      // The attempt then counts as lost, and begins again.
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
  /**
   * The last place of a host is kept for an account that has none there. So a few accounts with dead receivers cannot fill a host
   * that others use.
   */
  const hasRoom = (accountId: string, host: string) => {
    const left = maxAttemptsToHost - toHost.of(host);
    return left > (ofAccountToHost.of(`${accountId} ${host}`) === 0 ? 0 : 1);
  };

  /**
   * Where the longest due webhook of an account is for a host without room, finds one that is due for another host. Each turn looks
   * at a bounded number of hosts. So neither the backlog of one host nor the number of hosts delays other accounts.
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

  /**
   * Begins one attempt of each account that has one due, from the account after the last one that began one. True where one began.
   */
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
      // Otherwise no host has room, or another process has the webhook.
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
  const now = clock.now();
  const headers = await signedHeaders({ id: webhookId, body }, validSecrets(secrets, now), now);
  try {
    const exchange = { body, headers, timeoutMs: attemptTimeoutMs, maxAnswerBytes, signal };
    return { kind: "answered", status: await fetcher.post(url, exchange) };
  } catch (error) {
    // The kind of the error is documented, and does not contain the URL.
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
