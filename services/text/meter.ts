import { ErrorReason, isRefusal, RefusalError, refuse } from "#kit/errors.ts";
import { noHoldReasons } from "#kit/holds.ts";
import type { Ids } from "#kit/ids.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import { createBudgets } from "./budget.ts";
import type { ClosingContext } from "./closing.ts";
import {
  beatTickMs,
  confirmWithinMs,
  countPatienceMs,
  holdCheckMs,
  leaseMs,
  settleBudgetMs,
} from "./limits.ts";
import { createMetered, type Metered, type MeteredContext } from "./metered.ts";
import { outputWithin } from "./pricing.ts";
import type { PreparedRequest } from "./request/prepare.ts";
import type { Intent } from "./store.ts";
import { createTicker } from "./ticker.ts";
import { counterFor, type TokenCounter } from "./tokens/count.ts";
import { createTally, type Tally } from "./tokens/tally.ts";

/** What metering needs. */
export interface MeterContext extends Omit<ClosingContext, "background"> {
  ids: Ids;
  counter: TokenCounter;
}

/** Who a request is made for. */
export interface Payer {
  principal: Principal;
  /** USD micros of a calendar month; undefined: none. */
  keyMonthlyLimit: bigint | undefined;
}

/** A written intent. */
export interface Opened {
  /**
   * Holds the money and makes the request ready for dispatch. Refuses as billing does, with SERVICE_UNAVAILABLE where that
   * took too long or failed, or with the reason of `signal`; the hold is then gone or on its way out.
   */
  pay(signal: AbortSignal): Promise<Metered>;
}

/** Opens requests and keeps the running ones alive (docs/money.md). */
export interface Meter {
  /** Writes the intent. Undefined where its idempotency slot is taken. */
  open(
    request: PreparedRequest,
    payer: Payer,
    idempotency: Intent["idempotency"],
  ): Promise<Opened | undefined>;
  /** Checkpoints what runs, every 2 s each, until `signal` aborts. */
  keepAlive(signal: AbortSignal): Promise<void>;
  /** Resolves when every end that was decided is written down, or left to the sweeper. */
  idle(): Promise<void>;
}

/** Makes a meter. */
export function createMeter(context: MeterContext): Meter {
  const { clock, store } = context;
  const running = new Set<Metered>();
  const ending = new Set<Promise<unknown>>();
  const background = (work: Promise<unknown>) => {
    ending.add(work);
    void work.finally(() => ending.delete(work));
  };
  const budgets = createBudgets(clock, settleBudgetMs, () => ticker.wake());
  const patience = createBudgets(clock, countPatienceMs, () => ticker.wake());
  const ticker = createTicker({
    clock,
    tickMs: beatTickMs,
    isIdle: () => running.size === 0 && budgets.isIdle() && patience.isIdle(),
    tick() {
      budgets.tick();
      patience.tick();
      for (const metered of running) metered.beat();
    },
  });
  const metering = { ...context, background, budgets, patience };
  return {
    async open(request, payer, idempotency) {
      const openedAt = clock.steady();
      const intent = intentOf(request, payer, idempotency, context);
      if (!(await store.open(intent))) return undefined;
      const counter = counterFor(intent.accountId, context.counter);
      const tally = createTally(request, counter, (error) => {
        context.events.trouble("tokens are guessed", intent.requestId, error);
      });
      return {
        async pay(signal) {
          const paid = await hold(intent, request, payer, context, { openedAt, signal }).catch(
            async (error) => {
              await giveUp(intent, tally, error, metering);
              throw withAffordable(error, request);
            },
          );
          const metered = createMetered(paid, tally, metering, () => {
            running.delete(metered);
          });
          running.add(metered);
          ticker.wake();
          return metered;
        },
      };
    },
    keepAlive: (signal) => ticker.run(signal),
    async idle() {
      while (ending.size > 0) await Promise.all(ending);
    },
  };
}

function intentOf(
  request: PreparedRequest,
  { principal, keyMonthlyLimit: _limit }: Payer,
  idempotency: Intent["idempotency"],
  { clock, ids, owner }: MeterContext,
): Intent {
  const now = clock.now();
  return {
    // The time comes first, so that what billing writes about neighbours lies side by side in its index.
    requestId: ids.make(`text_${now.toString(36)}`, 15),
    accountId: principal.accountId,
    keyId: principal.keyId,
    operation: request.operation,
    modelId: request.model.id,
    catalogVersion: request.catalogVersion,
    price: request.price,
    bounds: request.bounds,
    holdAmount: request.holdAmount,
    holdCheckAt: now + holdCheckMs,
    // Without a key nothing of a request is known that was lost before its first checkpoint: it costs nothing.
    inputTokens: idempotency ? request.guessedInput : 0,
    owner,
    openedAt: now,
    leaseUntil: now + leaseMs,
    ...(idempotency ? { idempotency } : {}),
  };
}

/**
 * Reserve, then confirm, both within 5 s of the intent (of `openedAt`, by the monotonic clock); the intent with what is held
 * now.
 */
async function hold(
  intent: Intent,
  { leastHold }: PreparedRequest,
  { keyMonthlyLimit }: Payer,
  { clock, store, holds, owner }: MeterContext,
  { openedAt, signal }: { openedAt: number; signal: AbortSignal },
): Promise<Intent> {
  const { requestId, price } = intent;
  const isInTime = () => clock.steady() <= openedAt + confirmWithinMs;
  signal.throwIfAborted();
  const holdAmount = await holds.open(intent, { keyMonthlyLimit, least: leastHold });
  signal.throwIfAborted();
  // The whole amount pays for the whole bound; less for a smaller one.
  const output = outputWithin(price, intent.bounds, holdAmount);
  const paid = { ...intent, holdAmount, bounds: { ...intent.bounds, output } };
  const isConfirmed =
    isInTime() && (await store.confirm(requestId, owner, clock.now() + leaseMs, paid));
  // Past the time others may act as if it were never sent.
  if (!isConfirmed || !isInTime()) {
    refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: { retry_after_ms: "1000" } });
  }
  signal.throwIfAborted();
  return paid;
}

/** Ends a request that was not paid for: there is no hold, or it is on its way out. Never rejects. */
async function giveUp(
  intent: Intent,
  tally: Tally,
  error: unknown,
  context: MeteredContext,
): Promise<void> {
  const { requestId } = intent;
  if (!isRefusal(error, ...noHoldReasons)) {
    await createMetered(intent, tally, context, () => {}).finish({ kind: "unsent" });
    return;
  }
  await context.store.withdraw(requestId, context.owner).catch((trouble) => {
    context.events.trouble("an intent could not be withdrawn", requestId, trouble);
  });
}

/** A refusal for want of money also says which bound of the output there would be money for. */
function withAffordable(error: unknown, request: PreparedRequest): unknown {
  const { INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED } = ErrorReason;
  if (!isRefusal(error, INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED)) return error;
  const { reason, message, metadata } = error;
  // A billing of before named no amounts.
  if (metadata.spendable === undefined) return error;
  const { price, bounds } = request;
  const output = outputWithin(price, bounds, BigInt(metadata.spendable));
  const hint = `It would be taken with a max_output_tokens of up to ${output}.`;
  return new RefusalError(reason, {
    message: output > 0 ? `${message} ${hint}` : message,
    metadata: { ...metadata, max_output_tokens: `${output}` },
  });
}
