import type { Clock } from "#kit/clock.ts";
import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { TextEvents } from "./events.ts";
import type { TextHolds } from "./holds.ts";
import {
  answerKeptMs,
  closeRetryMs,
  leaseMarginMs,
  opaqueStateKeptMs,
  reviewKeptMs,
  settleRetryMs,
} from "./limits.ts";
import { type ChargedTokens, chargeOf } from "./pricing.ts";
import { opaqueHash } from "./request/opaque.ts";
import type { Charge, Closing, Intent, KeptAnswer, UsageStore } from "./store.ts";
import type { ReportedUsage } from "./upstream/port.ts";
import { type EndKind, verdictOf } from "./usage.ts";

/** How a request ended, and what it leaves. */
export interface End {
  kind: EndKind;
  reported?: ReportedUsage | undefined;
  /** Output that was not seen but is known of, or must be assumed, in tokens: it counts where upstream reports no usage. */
  unseenTokens?: number | undefined;
  /** It went past the bound of its output and was cut there: without usage it costs the bound. */
  isCut?: boolean | undefined;
  /** What is kept of the complete answer for the idempotency key: JSON, which shows what we counted, where we did. */
  answer?: ((estimate: ChargedTokens | undefined) => KeptAnswer | undefined) | undefined;
  /** Properties of the request that had no effect, which a replay of the answer names again. */
  ignored?: readonly string[] | undefined;
  /** Opaque state that the answer gave away, and the upstream that made it. */
  opaque?: { values: readonly string[]; upstream: string };
}

/** What an end comes to. */
export interface Decision {
  end: End;
  closing: Closing;
  /** What is charged, where we counted it ourselves: the answer shows it. */
  estimate?: ChargedTokens;
  /** What upstream reported and nobody can believe. */
  disbelieved?: ReportedUsage | undefined;
}

/** What closing needs. */
export interface ClosingContext {
  clock: Clock;
  store: UsageStore;
  holds: TextHolds;
  events: TextEvents;
  /** This process, as the owner of its requests. */
  owner: string;
  /** Work that only whoever stops the process waits for. */
  background(work: Promise<unknown>): void;
}

/**
 * Closes a request of this process: `open → settling`, settle, and, behind the caller's back, `closed`. False where another
 * process had closed it. Rejects where the store or billing is away; the sweeper goes on from there. `onWritten`: whatever
 * happens from now on, a repeat under its idempotency key finds how it ended.
 */
export async function closeRequest(
  { end, closing, disbelieved }: Decision,
  intent: Intent,
  leaseUntil: number,
  context: ClosingContext,
  onWritten: () => void,
): Promise<boolean> {
  await rememberOpaque(end, intent, context);
  if (disbelieved) await noteReview(disbelieved, closing, intent, context);
  if (!(await writeClosing(closing, intent.requestId, leaseUntil, context))) return false;
  onWritten();
  const { clock, events, holds, store } = context;
  events.closed(intent, end.kind, closing.charge);
  await holds.end(intent, closing.charge);
  const finishing = store.finish(intent.requestId, clock.now() + answerKeptMs).catch((error) => {
    events.trouble("a settled request is left to the sweeper", intent.requestId, error);
  });
  context.background(finishing);
  return true;
}

/** What an end comes to, by the table of docs/money.md. `count` gives input and output tokens so far. */
export async function decide(
  end: End,
  intent: Intent,
  count: () => Promise<readonly [input: number, output: number]>,
): Promise<Decision> {
  const { kind, reported, isCut, unseenTokens = 0 } = end;
  const { bounds, price, holdAmount } = intent;
  const settling = (charge: Charge, estimate?: ChargedTokens): Decision => {
    const answer = end.answer?.(estimate);
    const { ignored = [] } = end;
    const kept = answer ? { answer, ...(ignored.length > 0 ? { ignored } : {}) } : {};
    const closing: Closing = { kind: "settling", end: kind, charge, ...kept };
    return { end, closing, ...(estimate ? { estimate } : {}) };
  };
  const verdict = verdictOf(kind, reported, bounds);
  switch (verdict.kind) {
    case "free":
      return settling(noCharge);
    case "reported": {
      const amount = chargeOf(price, verdict.tokens, holdAmount);
      return settling({ amount, ...verdict.tokens, estimated: false });
    }
    case "count": {
      const [input, seen] = await count();
      const charge = estimatedCharge(intent, input, isCut ? bounds.output : seen + unseenTokens);
      return { ...settling(charge, charge), disbelieved: verdict.disbelieved };
    }
  }
}

/** For the operator: the request is settled by our count all the same. */
async function noteReview(
  reported: ReportedUsage,
  { charge }: Closing,
  intent: Intent,
  { clock, store, events }: ClosingContext,
): Promise<void> {
  events.review(intent, reported);
  const { requestId, accountId, modelId } = intent;
  const review = {
    requestId,
    accountId,
    modelId,
    reported: JSON.stringify(reported),
    charged: charge.amount ?? 0n,
    at: clock.now(),
  };
  await store.noteReview(review, clock.now() + reviewKeptMs).catch((error) => {
    events.trouble("a review could not be written down", requestId, error);
  });
}

/** Tries until the lease is over, by the monotonic clock: then the request is the sweeper's. */
async function writeClosing(
  wanted: Closing,
  requestId: string,
  leaseUntil: number,
  { clock, store, events, owner }: ClosingContext,
): Promise<boolean> {
  let closing = wanted;
  for (let attempt = 0; ; attempt++) {
    const now = clock.now();
    const begunAt = clock.steady();
    try {
      const at = { now, dueAt: now + settleRetryMs };
      const isOurs = await store.close(requestId, { owner }, closing, at);
      // Nobody else closes within the lease: an attempt whose answer was lost did it.
      return isOurs || (attempt > 0 && begunAt < leaseUntil);
    } catch (error) {
      if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) {
        if (!(closing.answer instanceof Uint8Array)) throw error;
        // Whatever the store has against the answer: what it cost, and that it was given, must stand.
        events.trouble("an answer could not be kept", requestId, error);
        closing = { ...closing, answer: "not_kept" };
        continue;
      }
      if (clock.steady() + closeRetryMs > leaseUntil - leaseMarginMs) throw error;
      await clock.sleep(closeRetryMs);
    }
  }
}

/** Before the answer ends, so that the next turn finds it. */
async function rememberOpaque({ opaque }: End, intent: Intent, context: ClosingContext) {
  if (!opaque || opaque.values.length === 0) return;
  const makers = [...new Set(opaque.values)].map((value) => ({
    hash: opaqueHash(value),
    accountId: intent.accountId,
    upstream: opaque.upstream,
  }));
  const until = context.clock.now() + opaqueStateKeptMs;
  await context.store.rememberMakers(makers, until).catch((error) => {
    context.events.trouble("opaque state could not be remembered", intent.requestId, error);
  });
}

/** Nothing is charged, and the hold is released. */
export const noCharge: Charge = {
  amount: undefined,
  input: 0,
  cachedInput: 0,
  output: 0,
  estimated: false,
};

/**
 * A charge for tokens that we counted, no more than the bounds of the request: an upstream that keeps to them by its own
 * tokenizer can be above them by ours.
 */
export function estimatedCharge(
  { price, holdAmount, bounds }: Pick<Intent, "price" | "holdAmount" | "bounds">,
  input: number,
  output: number,
): Charge {
  const tokens: ChargedTokens = {
    input: Math.min(input, bounds.input),
    cachedInput: 0,
    output: Math.min(output, bounds.output),
  };
  return { amount: chargeOf(price, tokens, holdAmount), ...tokens, estimated: true };
}
