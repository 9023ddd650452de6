import { leaseMarginMs, leaseMs, settleRetryMs } from "#common/paid-work/limits.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { ReportedUsage } from "../../upstreams/text/port.ts";
import type { TextEvents } from "../base/events.ts";
import {
  answerKeptMs,
  closeRetryMs,
  keptCountMs,
  maxKeptBytesPerAccount,
  opaqueStateKeptMs,
  reviewKeptMs,
} from "../base/limits.ts";
import type { Decision, End } from "../metering/charge.ts";
import { hashesToRemember } from "../request/opaque.ts";
import type { Closing, Intent, Told, UsageStore } from "../store/store.ts";
import type { Budgets } from "./budget.ts";
import type { DrawNotes, TextHolds } from "./text-holds.ts";

/** What closing needs. */
export interface ClosingContext {
  clock: Clock;
  store: UsageStore;
  holds: TextHolds;
  events: TextEvents;
  /** This process, as the owner of its requests. */
  owner: string;
  /** Of 500 ms each. */
  budgets: Budgets;
  /** Work that only the end of the process waits for. */
  background(work: Promise<unknown>): void;
}

/** What this process knows of a request's money. Times by the monotonic clock. */
export interface Cover {
  /**
   * Until then the hold is certain to be open. A request whose row was there by then (`early`) is covered for a lease from each
   * checkpoint on: billing asks about its hold, and is told to keep it.
   */
  until: number;
  /** `sent`: it may be there. `late`: it came when billing might have closed the hold already. */
  row: "none" | "sent" | "early" | "late";
}

/** A request that ends. */
export interface EndingRequest {
  intent: Intent;
  cover: Cover;
  /** The checkpoint that is being written. */
  checking: Promise<unknown>;
  told: Told;
  fromFree: DrawNotes["fromFree"];
}

/**
 * Ends a request of this process: draws its charge. True once its last event may go out: the charge is drawn, or stands in a row
 * that billing's question will find, and is drawn behind the caller's back. False where another process decided otherwise, or it
 * cannot be paid any more. Never rejects.
 */
export async function closeRequest(
  { end, closing: decided, disbelieved }: Decision,
  request: EndingRequest,
  context: ClosingContext,
): Promise<boolean> {
  const { intent, cover } = request;
  const { budgets, events, background } = context;
  const closing = { ...decided, told: toldOf(end, request) };
  const isKeyed = intent.idempotency !== undefined;
  const noted = Promise.all([
    rememberOpaque(end, intent, context),
    disbelieved && noteReview(disbelieved, closing, intent, context),
  ]);
  // No caller gets the end of an answer that a repeat would not find: should this process die, it would be generated and charged
  // again. Any other request needs no row.
  let isWritten = isKeyed && (await writeClosing(closing, request, context));
  if (isKeyed && !isWritten) return false;
  let charged: bigint | undefined;
  // Billing asks before it closes the hold, and finds a row that was there in time.
  const isSafe = () => isWritten && cover.row === "early";
  const drawing = drawCharge({ end, closing }, request, isSafe, context).then((drawn) => {
    charged = drawn;
    if (drawn !== undefined && cover.row !== "none") {
      background(finishRow(drawn, request, context));
    }
  });
  background(drawing);
  await budgets.within(Promise.all([noted, drawing]), undefined);
  if (charged === undefined && !isWritten) {
    const writing = writeClosing(closing, request, context).then((written) => {
      isWritten = written;
    });
    background(writing);
    await Promise.race([drawing, writing]);
  }
  // Of a hold that billing may have closed meanwhile only the draw tells what became of the charge.
  if (charged === undefined && !isSafe()) await drawing;
  const isOurs = charged === undefined ? isSafe() : charged === (closing.charge.amount ?? 0n);
  if (isOurs) events.closed(intent, end.kind, closing.charge);
  return isOurs;
}

/** What the record says of a request that has ended. */
function toldOf({ finishReason, opaque }: End, { told }: EndingRequest): Told {
  const upstream = opaque?.upstream;
  return {
    ...told,
    ...(finishReason ? { finishReason } : {}),
    ...(upstream ? { upstream } : {}),
  };
}

/** Draws until the outcome is known: what was charged. Undefined where it is left to the sweeper, or given up. */
async function drawCharge(
  { end, closing }: Pick<Decision, "end" | "closing">,
  { intent, fromFree }: EndingRequest,
  isSafe: () => boolean,
  { clock, events, holds }: ClosingContext,
): Promise<bigint | undefined> {
  const notes = { ...closing.told, status: end.kind, endedAt: clock.now(), fromFree };
  const giveUpAt = clock.steady() + leaseMs;
  for (;;) {
    try {
      return await holds.draw(intent, closing.charge, notes);
    } catch (error) {
      const isAway = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
      if (!isSafe() && isAway && clock.steady() < giveUpAt) {
        await clock.sleep(closeRetryMs);
        continue;
      }
      const left = isSafe() ? "is left to the sweeper" : "could not be charged";
      events.trouble(`a request ${left}`, intent.requestId, error);
      return undefined;
    }
  }
}

/** Its charge is drawn. What a checkpoint is still writing is waited for, so that no row stays behind. */
async function finishRow(
  charged: bigint,
  { intent, checking }: EndingRequest,
  { clock, events, store }: ClosingContext,
): Promise<void> {
  await checking;
  await store.finish(intent.requestId, clock.now() + answerKeptMs, charged).catch((error) => {
    events.trouble("a charged request is left to the sweeper", intent.requestId, error);
  });
}

/** What a charge is made of. */
function figuresOf({ inputTokens, cachedInputTokens, outputTokens }: ReportedUsage): ReportedUsage {
  return { inputTokens, cachedInputTokens, outputTokens };
}

/** For the operator: the request is settled by our count all the same. */
async function noteReview(
  reported: ReportedUsage,
  { charge }: Closing,
  intent: Intent,
  { clock, store, events }: ClosingContext,
): Promise<void> {
  events.review(intent, figuresOf(reported));
  const { requestId, accountId, modelId } = intent;
  const review = {
    requestId,
    accountId,
    modelId,
    reported: JSON.stringify(figuresOf(reported)),
    charged: charge.amount ?? 0n,
    at: clock.now(),
  };
  await store.noteReview(review, clock.now() + reviewKeptMs).catch((error) => {
    events.trouble("a review could not be written down", requestId, error);
  });
}

/**
 * Writes an end down, in a row of its own where there is none. Tries until the lease is over, by the monotonic clock: then the
 * request is the sweeper's. False where another process has closed it, or the store is away. Never rejects.
 */
async function writeClosing(
  wanted: Closing,
  request: EndingRequest,
  context: ClosingContext,
): Promise<boolean> {
  const { intent, cover } = request;
  const { clock, store, events, owner } = context;
  const { requestId } = intent;
  const giveUpAt = cover.until - leaseMarginMs;
  let closing = wanted;
  let isCounted = false;
  for (let attempt = 0; ; attempt++) {
    const now = clock.now();
    const begunAt = clock.steady();
    try {
      if (cover.row === "none" || cover.row === "sent") {
        await openRow({ ...intent, leaseUntil: now + leaseMs }, cover, context);
      }
      if (!isCounted && !(await mayKeep(closing, intent, context))) {
        closing = { ...closing, answer: "not_kept" };
      }
      isCounted = true;
      const at = { now, dueAt: now + settleRetryMs };
      const isOurs = await store.close(requestId, { owner }, closing, at);
      // No other process closes within the lease: an attempt whose answer was lost did it.
      return isOurs || (attempt > 0 && begunAt < cover.until);
    } catch (error) {
      if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) {
        if (closing.answer instanceof Uint8Array) {
          // Also where the store refuses the answer: what it cost, and that it was given, must stand.
          events.trouble("an answer could not be kept", requestId, error);
          closing = { ...closing, answer: "not_kept" };
          continue;
        }
      } else if (clock.steady() + closeRetryMs <= giveUpAt) {
        await clock.sleep(closeRetryMs);
        continue;
      }
      events.trouble("an end could not be written down", requestId, error);
      return false;
    }
  }
}

/** Writes the row of a request that has none; it covers the request where it came in time. */
export async function openRow(
  intent: Intent,
  cover: Cover,
  { clock, store }: Pick<ClosingContext, "clock" | "store">,
): Promise<void> {
  await store.open(intent);
  cover.row = clock.steady() < cover.until ? "early" : "late";
}

/** Counts the answer among those that are kept of its account; false where there are too many. */
async function mayKeep(
  { answer }: Closing,
  intent: Intent,
  { clock, store, events }: ClosingContext,
): Promise<boolean> {
  if (!(answer instanceof Uint8Array)) return true;
  const now = clock.now();
  const until = Math.ceil((now + answerKeptMs) / keptCountMs) * keptCountMs;
  const at = { now, until, most: maxKeptBytesPerAccount };
  const isKept = await store.countKept(intent.accountId, answer.length, at);
  if (!isKept) events.unkept(intent);
  return isKept;
}

/** Before the answer ends, so that the next turn finds it. */
async function rememberOpaque({ opaque }: End, intent: Intent, context: ClosingContext) {
  if (!opaque || opaque.values.length === 0) return;
  const hashes = await Promise.all([...new Set(opaque.values)].map(hashesToRemember));
  const { accountId } = intent;
  const { upstream } = opaque;
  const makers = [...new Set(hashes.flat())].map((hash) => ({ hash, accountId, upstream }));
  const until = context.clock.now() + opaqueStateKeptMs;
  await context.store.rememberMakers(makers, until).catch((error) => {
    context.events.trouble("opaque state could not be remembered", intent.requestId, error);
  });
}
