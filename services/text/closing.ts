import type { Clock } from "#kit/clock.ts";
import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { TextEvents } from "./events.ts";
import type { TextHolds } from "./holds.ts";
import {
  answerKeptMs,
  closeRetryMs,
  keepReviewMs,
  leaseMarginMs,
  opaqueStateKeptMs,
  settleRetryMs,
} from "./limits.ts";
import { type ChargedTokens, chargeOf } from "./pricing.ts";
import { opaqueHash } from "./request/opaque.ts";
import type { Charge, Closing, Intent, KeptAnswer, UsageStore } from "./store.ts";
import type { Tally } from "./tokens/tally.ts";
import type { ReportedUsage } from "./upstream/port.ts";
import { type EndKind, verdictOf } from "./usage.ts";

/** How a request ended, and what it leaves. */
export interface End {
  kind: EndKind;
  reported?: ReportedUsage | undefined;
  /** The complete answer as JSON, to be kept for the idempotency key. */
  answer?: KeptAnswer | undefined;
  /** Opaque state that the answer gave away, and the upstream that made it. */
  opaque?: { values: readonly string[]; upstream: string };
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
  end: End,
  intent: Intent,
  tally: Tally,
  leaseUntil: number,
  context: ClosingContext,
  onWritten: () => void,
): Promise<boolean> {
  await rememberOpaque(end, intent, context);
  const closing = await closingOf(end, intent, tally);
  if (!(await writeClosing(closing, intent.requestId, leaseUntil, context))) return false;
  onWritten();
  const { clock, events, holds, store } = context;
  if (closing.kind === "review") {
    if (end.reported) events.review(intent, end.reported);
    return true;
  }
  events.closed(intent, end.kind, closing.charge);
  await holds.end(intent, closing.charge);
  const finishing = store.finish(intent.requestId, clock.now() + answerKeptMs).catch((error) => {
    events.trouble("a settled request is left to the sweeper", intent.requestId, error);
  });
  context.background(finishing);
  return true;
}

/** What an end comes to, by the table of decisions section 4. */
async function closingOf(end: End, intent: Intent, tally: Tally): Promise<Closing> {
  const { kind, reported, answer } = end;
  const kept = answer === undefined ? {} : { answer };
  const verdict = verdictOf(kind, reported, intent.bounds);
  switch (verdict.kind) {
    case "review":
      return { kind: "review", end: kind, reported: JSON.stringify(verdict.reported), ...kept };
    case "free":
      return { kind: "settling", end: kind, charge: noCharge, ...kept };
    case "reported": {
      const amount = chargeOf(intent.price, verdict.tokens, intent.holdAmount);
      const charge: Charge = { amount, ...verdict.tokens, estimated: false };
      return { kind: "settling", end: kind, charge, ...kept };
    }
    case "count": {
      const tokens = { input: await tally.input(), cachedInput: 0, output: await tally.output() };
      return { kind: "settling", end: kind, charge: estimatedCharge(intent, tokens), ...kept };
    }
  }
}

/** Tries until the lease is over: then the request is the sweeper's. */
async function writeClosing(
  wanted: Closing,
  requestId: string,
  leaseUntil: number,
  { clock, store, events, owner }: ClosingContext,
): Promise<boolean> {
  let closing = wanted;
  const delayMs = closing.kind === "review" ? keepReviewMs : settleRetryMs;
  for (let attempt = 0; ; attempt++) {
    const now = clock.now();
    try {
      const at = { now, dueAt: now + delayMs };
      const isOurs = await store.close(requestId, { owner }, closing, at);
      // Nobody else closes within the lease: an attempt whose answer was lost did it.
      return isOurs || (attempt > 0 && now < leaseUntil);
    } catch (error) {
      if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) {
        if (!(closing.answer instanceof Uint8Array)) throw error;
        // Whatever the store has against the answer: what it cost, and that it was given, must stand.
        events.trouble("an answer could not be kept", requestId, error);
        closing = { ...closing, answer: "not_kept" };
        continue;
      }
      if (clock.now() + closeRetryMs > leaseUntil - leaseMarginMs) throw error;
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

/** A charge for tokens that we counted. */
export function estimatedCharge(
  { price, holdAmount }: Pick<Intent, "price" | "holdAmount">,
  tokens: ChargedTokens,
): Charge {
  return { amount: chargeOf(price, tokens, holdAmount), ...tokens, estimated: true };
}
