import type { Budgets } from "./budget.ts";
import { type ClosingContext, closeRequest, decide, type End } from "./closing.ts";
import { beatMs, checkpointCharacters, leaseMarginMs, leaseMs } from "./limits.ts";
import type { ChargedTokens } from "./pricing.ts";
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
  /** Called once, when another process has taken the request over: it must stop. */
  onLost: (() => void) | undefined;
  /** Output that went past. */
  saw(text: string): void;
  /** Writes down what was seen so far, where the last time is 2 s ago. Never throws. */
  beat(): void;
  /**
   * Closes the request, once its end is known, and settles its hold: once, the first end counts. Where upstream reported no
   * usage, that waits for our count. Resolves when it is done, or has then taken 500 ms and goes on behind. Never rejects.
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
    beatAt = now;
    try {
      // An answer that came whole ends in the same turn: its tokens are not worth counting.
      await Promise.resolve();
      if (finished) return;
      // The lease does not depend on how long counting takes.
      const [inputTokens, outputTokens] = await counts();
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
  const close = async (end: End | Promise<End>): Promise<Finished> => {
    onClosed();
    if (isLost) return { isOurs: false };
    const decision = await decide(await end, intent, counts);
    const work = closeRequest(decision, intent, leaseUntil, context).catch((error) => {
      events.trouble("a request is left to the sweeper", requestId, error);
      return true;
    });
    context.background(work);
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
      finished ??= closeOnce(end);
      return finished;
    },
  };
  return metered;
}
