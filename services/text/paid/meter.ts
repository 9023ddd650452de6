// Opens the holds of requests, and writes checkpoints while they run. `paid-request.ts` is one such request, and `reaper.ts` ends
// those of dead processes.

import { type KeyLimit, noHoldReasons, type Reserved } from "#common/agreements/hold-client.ts";
import { refuseLate } from "#common/paid-work/dispatch.ts";
import { drawBudgetMs, holdCheckMs, leaseMs } from "#common/paid-work/limits.ts";
import { whenAborted } from "#kit/base/abort.ts";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import { type StopSignal, signalOf } from "#kit/base/stop.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { Clock } from "#kit/time/clock.ts";
import { answerIdOf } from "../../upstreams/text/answer-defaults.ts";
import { beatTickMs, countAheadEveryMs, countAheadMs, countPatienceMs } from "../base/limits.ts";
import { UnderWay } from "../base/under-way.ts";
import { noCharge } from "../metering/charge.ts";
import { outputWithin } from "../metering/pricing.ts";
import type { PreparedRequest } from "../request/prepared.ts";
import type { Intent } from "../store/store.ts";
import { counterFor, type TokenCounter } from "../tokens/count.ts";
import { createTally } from "../tokens/tally.ts";
import { createBudgets } from "./budget.ts";
import { type Metered, type MeteredContext, MeteredRequest } from "./paid-request.ts";
import type { ClosingContext } from "./settling.ts";

/** Dependencies of metering. */
export interface MeterContext extends Omit<ClosingContext, "background" | "budgets" | "ending"> {
  ids: Ids;
  counter: TokenCounter;
}

/** The caller of a request, and the limit of its key. */
export interface Payer {
  principal: Principal;
  /** The id of the caller's HTTP request. */
  callId?: string | undefined;
  /** Undefined: the key has no limit. */
  keyLimit: KeyLimit | undefined;
}

/** Opens requests and keeps the running ones alive (docs/money.md). */
export interface Meter {
  /**
   * Opens the hold of a request, which may then be sent to an upstream. Undefined where its idempotency slot is taken. Refuses with
   * billing's reasons, with SERVICE_UNAVAILABLE where the hold took too long or failed, or with the reason of `signal`. Then the hold
   * is gone or will end.
   */
  open(
    request: PreparedRequest,
    payer: Payer,
    idempotency: Intent["idempotency"],
    signal: StopSignal,
  ): Promise<Metered | undefined>;
  /** Writes checkpoints of the running requests, every 2 s each, until `signal` aborts. */
  keepAlive(signal: AbortSignal): Promise<void>;
  /** Resolves when every decided end is recorded, or left to the sweep. */
  idle(): Promise<void>;
}

/** Makes a meter. */
export function createMeter(context: MeterContext): Meter {
  const { clock, store } = context;
  const running = new Set<Metered>();
  const ending = new UnderWay<object>();
  const background = (work: Promise<unknown>) => {
    const ended = () => ending.ended(work);
    ending.began(work);
    work.then(ended, ended);
  };
  const budgets = createBudgets(clock, drawBudgetMs, () => ticker.wake());
  const patience = createBudgets(clock, countPatienceMs, () => ticker.wake());
  let countedAheadMs = Number.NEGATIVE_INFINITY;
  /** Loads the counting thread by the time of the first checkpoint. */
  const countAhead = () => {
    // The first one is the oldest.
    const [oldest] = running;
    const now = clock.steady();
    if (!oldest || now - oldest.openedAt < countAheadMs) return;
    if (now - countedAheadMs < countAheadEveryMs) return;
    countedAheadMs = now;
    // Where counting fails, the number is guessed when it is needed.
    context.counter.count(["."]).catch(() => {});
  };
  const ticker = createTicker({
    clock,
    tickMs: beatTickMs,
    isIdle: () => running.size === 0 && budgets.isIdle() && patience.isIdle(),
    tick() {
      budgets.tick();
      patience.tick();
      for (const metered of running) metered.beat();
      countAhead();
    },
  });
  const metering = { ...context, ending, background, budgets, patience };
  return {
    open(request, payer, idempotency, signal) {
      const openedAt = clock.steady();
      const { keyLimit } = payer;
      const intent = intentOf(request, payer, idempotency, context);
      const failed = async (error: unknown): Promise<never> => {
        await giveUp(intent, error, metering);
        throw withAffordable(error, request);
      };
      const opened = ({ held }: Reserved) => {
        try {
          signal.throwIfAborted();
          // The lease of the hold runs from the first request for it. A request that is sent later could have no hold any more.
          refuseLate(openedAt, clock);
          lowerTo(held, intent, request.heldContent);
        } catch (error) {
          return failed(error);
        }
        const counter = counterFor(intent.accountId, context.counter);
        const tally = createTally(request, counter, (error) => {
          context.events.trouble("tokens are guessed", intent.requestId, error);
        });
        const paid = { intent, tally, openedAt, keyLimit };
        const metered: Metered = new MeteredRequest(paid, metering, () => running.delete(metered));
        running.add(metered);
        ticker.wake();
        return metered;
      };
      const terms = { keyLimit, least: request.leastHold };
      if (!idempotency) return context.holds.open(intent, terms).then(opened, failed);
      return store.open(intent, signalOf(signal)).then((isNew) => {
        return isNew ? context.holds.open(intent, terms).then(opened, failed) : undefined;
      });
    },
    keepAlive: (signal) => ticker.run(signal),
    idle: () => ending.whenNone(),
  };
}

function intentOf(
  request: PreparedRequest,
  { principal, callId }: Payer,
  idempotency: Intent["idempotency"],
  { clock, ids, owner }: MeterContext,
): Intent {
  const now = clock.now();
  const { operation } = request;
  // The time comes first, so that billing's entries from about the same time are close together in its index.
  const requestId = ids.make(`text_${now.toString(36)}`, 15);
  const answerId = answerIdOf({ operation, requestId });
  return {
    requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    operation,
    modelId: request.model.id,
    catalogVersion: request.catalogVersion,
    price: request.price,
    bounds: request.bounds,
    holdAmount: request.holdAmount,
    holdCheckAt: now + holdCheckMs,
    owner,
    openedAt: now,
    leaseUntil: now + leaseMs,
    // Nothing was sent yet. Until the first checkpoint the request costs nothing.
    inputTokens: 0,
    outputTokens: 0,
    ...(idempotency ? { idempotency } : {}),
    told: { ...(callId ? { callId } : {}), streamed: request.form !== "json", answerId },
  };
}

/** Lowers amount and bound to what is held. The whole amount pays for the whole bound. */
function lowerTo(held: bigint, intent: Intent, content: PreparedRequest["heldContent"]): void {
  if (held >= intent.holdAmount) return;
  const { price, bounds } = intent;
  intent.bounds = { ...bounds, output: outputWithin(price, bounds, held, content) };
  intent.holdAmount = held;
}

/** Ends a request that was not sent. It has no hold, or its hold ends now, at the latest when its lease is over. Never rejects. */
async function giveUp(intent: Intent, error: unknown, context: MeteredContext): Promise<void> {
  const { clock, events, holds, store, owner } = context;
  const { requestId } = intent;
  if (!isRefusal(error, ...noHoldReasons)) {
    events.closed(intent, "unsent", noCharge);
    const notes = { told: intent.told, status: "unsent", endedAt: clock.now() };
    const drawing = holds.draw(intent, noCharge, notes).catch((trouble) => {
      // That billing is away is reported once, by the code that detects it, and not for each request.
      if (isRefusal(trouble, ErrorReason.SERVICE_UNAVAILABLE)) return;
      events.trouble("a hold is left to its lease", requestId, trouble);
    });
    context.background(drawing);
  }
  if (!intent.idempotency) return;
  await store.withdraw(requestId, owner).catch((trouble) => {
    events.trouble("an intent could not be withdrawn", requestId, trouble);
  });
}

/** Adds to a refusal for missing money the bound of the output for which the money is enough. */
function withAffordable(error: unknown, request: PreparedRequest): unknown {
  const { INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED } = ErrorReason;
  if (!isRefusal(error, INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED)) return error;
  const { reason, message, metadata } = error;
  // A billing of an earlier version named no amounts.
  if (metadata.spendable === undefined) return error;
  if (!request.heldByBound) return error;
  const { price, bounds, heldContent } = request;
  const output = outputWithin(price, bounds, BigInt(metadata.spendable), heldContent);
  const name = request.operation === "messages" ? "max_tokens" : "max_output_tokens";
  const hint = `With ${name} of at most ${output} it would be accepted.`;
  return new RefusalError(reason, {
    message: output > 0 ? `${message} ${hint}` : message,
    metadata: { ...metadata, max_output_tokens: `${output}` },
  });
}

/** A tick that comes at regular intervals, as long as something waits for it. */
export interface Ticker {
  /** Something waits from now on. A ticker that rests starts again. */
  wake(): void;
  /** Ticks until `signal` aborts. Resolves then. */
  run(signal: AbortSignal): Promise<void>;
}

/** The work of a ticker, and its interval. */
export interface TickerOptions {
  clock: Clock;
  /** Milliseconds between two ticks. */
  tickMs: number;
  /** True where nothing waits. Then the next tick is put off until {@link Ticker.wake}. */
  isIdle(): boolean;
  /** Must not throw. */
  tick(): void;
}

/** Makes a ticker. It makes no ticks in a process in which nothing waits, because each would wake a core. */
export function createTicker({ clock, tickMs, isIdle, tick }: TickerOptions): Ticker {
  let life: AbortSignal | undefined;
  let isTicking = false;
  let ticking: Promise<void> | undefined;
  const tickUntilIdle = async (signal: AbortSignal) => {
    do {
      await clock.sleep(tickMs, signal).catch(() => {});
      tick();
    } while (!isIdle() && !signal.aborted);
    isTicking = false;
  };
  const wake = () => {
    if (isTicking || !life || life.aborted || isIdle()) return;
    isTicking = true;
    ticking = tickUntilIdle(life);
  };
  return {
    wake,
    async run(signal) {
      life = signal;
      wake();
      await whenAborted(signal);
      await ticking;
    },
  };
}
