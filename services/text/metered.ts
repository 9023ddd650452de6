import type { Budgets } from "./budget.ts";
import { type ClosingContext, closeRequest, type End } from "./closing.ts";
import { beatMs, checkpointCharacters, leaseMarginMs, leaseMs } from "./limits.ts";
import type { Intent } from "./store.ts";
import type { Tally } from "./tokens/tally.ts";

/** A request with its hold, from dispatch to settlement. */
export interface Metered {
  readonly requestId: string;
  readonly accountId: string;
  /** Called once, when another process has taken the request over: it must stop. */
  onLost: (() => void) | undefined;
  /** Output that went past. */
  saw(text: string): void;
  /** Writes down what was seen so far, where the last time is 2 s ago. Never throws. */
  beat(): void;
  /**
   * Closes the request and settles its hold: once, the first end counts. Resolves when that is done, or has taken 500 ms
   * and goes on behind; false where this process had lost the request before. Never rejects.
   */
  finish(end: End): Promise<boolean>;
}

/** What metering one request needs. */
export interface MeteredContext extends ClosingContext {
  /** Of 500 ms each. */
  budgets: Budgets;
  /** What a checkpoint waits for its counts. */
  patience: Budgets;
}

/** Meters the request of a written intent. `onClosed`: it needs no more beats. */
export function createMetered(
  intent: Intent,
  tally: Tally,
  context: MeteredContext,
  onClosed: () => void,
): Metered {
  const { clock, store, events, owner } = context;
  const { requestId, accountId } = intent;
  let leaseUntil = intent.leaseUntil;
  let beatAt = intent.openedAt;
  let isChecking = false;
  let isLost = false;
  let finished: Promise<boolean> | undefined;

  const lose = () => {
    if (isLost || finished) return;
    isLost = true;
    events.lost(intent);
    metered.onLost?.();
  };
  const checkpoint = async () => {
    if (isChecking || isLost || finished) return;
    isChecking = true;
    const now = clock.now();
    beatAt = now;
    try {
      // An answer that came whole ends in the same turn: its tokens are not worth counting.
      await Promise.resolve();
      if (finished) return;
      const counts = Promise.all([tally.input(), tally.output()]);
      // The lease does not depend on how long counting takes.
      const inTime = await context.patience.within(counts, undefined);
      const [inputTokens, outputTokens] = inTime ?? tally.guess();
      const seen = { inputTokens, outputTokens, leaseUntil: now + leaseMs };
      if (finished) return;
      if (await store.checkpoint(requestId, owner, seen)) leaseUntil = seen.leaseUntil;
      else lose();
    } catch (error) {
      events.trouble("a checkpoint could not be written", requestId, error);
      if (clock.now() > leaseUntil - leaseMarginMs) lose();
    } finally {
      isChecking = false;
    }
  };
  const closeWithinBudget = async (end: End): Promise<boolean> => {
    onClosed();
    if (isLost) return false;
    const work = closeRequest(end, intent, tally, leaseUntil, context).catch((error) => {
      events.trouble("a request is left to the sweeper", requestId, error);
      return true;
    });
    context.background(work);
    const isOurs = await context.budgets.within(work, true);
    if (!isOurs) events.lost(intent);
    return isOurs;
  };
  const metered: Metered = {
    requestId,
    accountId,
    onLost: undefined,
    saw(text) {
      if (text === "") return;
      tally.add(text);
      if (tally.uncounted >= checkpointCharacters) void checkpoint();
    },
    beat() {
      if (clock.now() - beatAt >= beatMs) void checkpoint();
    },
    finish(end) {
      finished ??= closeWithinBudget(end);
      return finished;
    },
  };
  return metered;
}
