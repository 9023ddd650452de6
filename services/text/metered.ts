import type { Budgets } from "./budget.ts";
import { type ClosingContext, closeRequest, decide, type End } from "./closing.ts";
import { beatMs, checkpointCharacters, leaseMarginMs, leaseMs } from "./limits.ts";
import type { ChargedTokens, TokenBounds } from "./pricing.ts";
import type { Intent } from "./store.ts";
import type { Tally } from "./tokens/tally.ts";

/** How finishing went. */
export interface Finished {
  /** False where this process had lost the request before. */
  isOurs: boolean;
  /** What is charged, where we counted it ourselves; undefined: what upstream reported, or nothing. */
  estimate?: ChargedTokens | undefined;
}

/** A request with its hold, from dispatch to settlement. */
export interface Metered {
  readonly requestId: string;
  readonly accountId: string;
  /** What is paid for. */
  readonly bounds: TokenBounds;
  /** Called once, when another process has taken the request over: it must stop. */
  onLost: (() => void) | undefined;
  /** Output that went past. */
  saw(text: string): void;
  /** Writes down what was seen so far, where the last time is 2 s ago. Never throws. */
  beat(): void;
  /**
   * Closes the request, once its end is known, and settles its hold: once, the first end counts. Where upstream reported no
   * usage, that waits for our count, and with an idempotency key for the record. Resolves when it is done, or has then taken
   * 500 ms and goes on behind. Never rejects.
   */
  finish(end: End | Promise<End>): Promise<Finished>;
}

/** What metering one request needs. */
export interface MeteredContext extends ClosingContext {
  /** Of 500 ms each. */
  budgets: Budgets;
  /** What a checkpoint waits for its counts. */
  patience: Budgets;
}

/** Meters the request of an intent that was written after `openedAt`, by the monotonic clock. `onClosed`: it needs no more beats. */
export function createMetered(
  intent: Intent,
  tally: Tally,
  context: MeteredContext,
  onClosed: () => void,
  openedAt = context.clock.steady(),
): Metered {
  const { clock, store, events, owner } = context;
  const { requestId, accountId } = intent;
  // By the monotonic clock: a machine's clock that is set takes no lease away and gives none.
  let leaseUntil = openedAt + leaseMs;
  let beatAt = openedAt;
  let isChecking = false;
  let isLost = false;
  let finished: Promise<Finished> | undefined;

  const lose = () => {
    if (isLost || finished) return;
    isLost = true;
    events.lost(intent);
    metered.onLost?.();
  };
  const counts = async (): Promise<readonly [input: number, output: number]> => {
    const counted = Promise.all([tally.input(), tally.output()]);
    return (await context.patience.within(counted, undefined)) ?? tally.guess();
  };
  const checkpoint = async () => {
    if (isChecking || isLost || finished) return;
    isChecking = true;
    const now = clock.now();
    const begunAt = clock.steady();
    beatAt = begunAt;
    try {
      // An answer that came whole ends in the same turn: its tokens are not worth counting.
      await Promise.resolve();
      if (finished) return;
      // The lease does not depend on how long counting takes.
      const [inputTokens, outputTokens] = await counts();
      const seen = { inputTokens, outputTokens, leaseUntil: now + leaseMs };
      if (finished) return;
      if (await store.checkpoint(requestId, owner, seen)) leaseUntil = begunAt + leaseMs;
      else lose();
    } catch (error) {
      events.trouble("a checkpoint could not be written", requestId, error);
      if (clock.steady() > leaseUntil - leaseMarginMs) lose();
    } finally {
      isChecking = false;
    }
  };
  const close = async (end: End | Promise<End>): Promise<Finished> => {
    onClosed();
    if (isLost) return { isOurs: false };
    const decision = await decide(await end, intent, counts);
    const written = Promise.withResolvers<void>();
    const closing = closeRequest(decision, intent, leaseUntil, context, written.resolve);
    const work = closing.catch((error) => {
      events.trouble("a request is left to the sweeper", requestId, error);
      return true;
    });
    context.background(work);
    // Nobody gets the end of an answer that a repeat would not find: should this process die, it would be generated and
    // charged again. What may go on behind is the settlement.
    if (intent.idempotency) await Promise.race([written.promise, work]);
    const isOurs = await context.budgets.within(work, true);
    if (!isOurs) events.lost(intent);
    return { isOurs, estimate: decision.estimate };
  };
  const closeOnce = (end: End | Promise<End>): Promise<Finished> => {
    const closing = close(end).catch((error) => {
      events.trouble("a request is left to the sweeper", requestId, error);
      return { isOurs: true };
    });
    context.background(closing);
    return closing;
  };
  const metered: Metered = {
    requestId,
    accountId,
    bounds: intent.bounds,
    onLost: undefined,
    saw(text) {
      if (text === "") return;
      tally.add(text);
      if (tally.uncounted >= checkpointCharacters) void checkpoint();
    },
    beat() {
      if (clock.steady() - beatAt >= beatMs) void checkpoint();
    },
    finish(end) {
      finished ??= closeOnce(end);
      return finished;
    },
  };
  return metered;
}
