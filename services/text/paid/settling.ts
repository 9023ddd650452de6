// Charges an ended request at billing. Its end is recorded in the store too, where a repeat of the request or another process may
// need it.

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

/** Dependencies of closing. */
export interface ClosingContext {
  clock: Clock;
  store: UsageStore;
  holds: TextHolds;
  events: TextEvents;
  /** This process, as the owner of its requests. */
  owner: string;
  /** Bounds of 500 ms each. */
  budgets: Budgets;
  /** Takes work for which only the end of the process waits. */
  background(work: Promise<unknown>): void;
}

/** The state of a request's hold and row, as this process knows it. Times are by the monotonic clock. */
export interface Cover {
  /**
   * Until this time the hold is certainly open. If the row was there by then (`early`), each checkpoint extends the time by a lease:
   * billing asks about the hold, and the answer is to keep it.
   */
  until: number;
  /** `sent`: the row may be there. `late`: it came when billing might have closed the hold already. */
  row: "none" | "sent" | "early" | "late";
}

/** A request that ends. */
export interface EndingRequest {
  intent: Intent;
  cover: Cover;
  /** The checkpoint that is being written. Undefined: none. */
  checking: Promise<unknown> | undefined;
  told: Told;
  fromFree: DrawNotes["fromFree"];
  /** The charge by billing. Undefined until its answer has come. */
  charged: bigint | undefined;
}

/**
 * Ends a request of this process, and charges it. True once its last event may be sent. Then it is charged, or its charge is in a row
 * that billing's question will find, and follows in the background. False where another process decided otherwise, or the hold can no
 * longer be charged. Never rejects.
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
  const { opaque } = end;
  const hasNotes = disbelieved !== undefined || (opaque && opaque.values.length > 0);
  const noted = hasNotes
    ? Promise.all([
        rememberOpaque(end, intent, context),
        disbelieved && noteReview(disbelieved, closing, intent, context),
      ])
    : undefined;
  // The row is written before a caller gets the end of its answer. If this process died otherwise, a repeat would not find the answer,
  // and it would be generated and charged again. A request without an idempotency key needs no row.
  let isWritten = isKeyed && (await writeClosing(closing, request, context));
  if (isKeyed && !isWritten) return false;
  // Billing asks before it closes the hold, and finds a row that was early.
  const isSafe = () => isWritten && cover.row === "early";
  const drawing = drawCharge({ end, closing }, request, isSafe, context);
  await budgets.within<unknown>(noted ? Promise.all([noted, drawing]) : drawing, undefined);
  if (request.charged === undefined) {
    background(drawing);
    if (!isWritten) {
      const writing = writeClosing(closing, request, context).then((written) => {
        isWritten = written;
      });
      background(writing);
      await Promise.race([drawing, writing]);
    }
    // Billing may have closed the hold meanwhile. Then only the call to billing shows what became of the charge.
    if (request.charged === undefined && !isSafe()) await drawing;
  }
  const { charged } = request;
  const isOurs = charged === undefined ? isSafe() : charged === (closing.charge.amount ?? 0n);
  if (isOurs) events.closed(intent, end.kind, closing.charge);
  return isOurs;
}

/** The record of a request that has ended. */
function toldOf({ failure, finishReason, opaque }: End, { told }: EndingRequest): Told {
  const upstream = opaque?.upstream;
  return {
    ...told,
    ...(finishReason ? { finishReason } : {}),
    ...(failure ? { failure } : {}),
    ...(upstream ? { upstream } : {}),
  };
}

/** Calls billing until the outcome is known, and notes what was charged. Nothing where that is left to the sweep, or given up. */
async function drawCharge(
  { end, closing }: Pick<Decision, "end" | "closing">,
  request: EndingRequest,
  isSafe: () => boolean,
  context: ClosingContext,
): Promise<void> {
  const { intent, fromFree, cover } = request;
  const { clock, events, holds } = context;
  const notes = { ...closing.told, status: end.kind, endedAt: clock.now(), fromFree };
  const giveUpAt = clock.steady() + leaseMs;
  for (;;) {
    try {
      request.charged = await holds.draw(intent, closing.charge, notes);
      if (cover.row !== "none") context.background(finishRow(request.charged, request, context));
      return;
    } catch (error) {
      const isAway = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
      if (!isSafe() && isAway && clock.steady() < giveUpAt) {
        await clock.sleep(closeRetryMs);
        continue;
      }
      const left = isSafe() ? "is left to the sweeper" : "could not be charged";
      events.trouble(`a request ${left}`, intent.requestId, error);
      return;
    }
  }
}

/** Finishes the row of a charged request. It waits for a checkpoint that is being written, so that no row stays behind. */
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

/** The numbers of a report. */
function figuresOf(reported: ReportedUsage): ReportedUsage {
  const { inputTokens, cachedInputTokens, outputTokens, details } = reported;
  return { inputTokens, cachedInputTokens, outputTokens, ...(details && { details }) };
}

/** Leaves a note for the operator. The request is settled by the count of genmesh nevertheless. */
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
 * Records an end, in a new row where there is none. Tries until the lease is over, by the monotonic clock. Then the sweep has the
 * request. False where another process has closed it, or the store is away. Never rejects.
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
      // No other process closes it within the lease. An earlier attempt that got no answer did it.
      return isOurs || (attempt > 0 && begunAt < cover.until);
    } catch (error) {
      if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) {
        if (closing.answer instanceof Uint8Array) {
          // The store may refuse the answer. The cost, and that the answer was given, must be recorded even then.
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

/** Writes the row of a request that has none. A row that came in time covers the request. */
export async function openRow(
  intent: Intent,
  cover: Cover,
  { clock, store }: Pick<ClosingContext, "clock" | "store">,
): Promise<void> {
  await store.open(intent);
  cover.row = clock.steady() < cover.until ? "early" : "late";
}

/** Counts the answer among the kept answers of its account. False where there are too many. */
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

/** Remembers opaque state before the answer ends, so that the next turn finds it. */
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
