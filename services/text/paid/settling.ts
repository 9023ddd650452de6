// Charges an ended request at billing. Its end is recorded in the store too, where a repeat of the request or another process may
// need it.

import type { KeyLimit } from "#common/agreements/hold-client.ts";
import { leaseMarginMs, leaseMs, settleRetryMs } from "#common/paid-work/limits.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
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
import type { UnderWay } from "../base/under-way.ts";
import type { Decision, End } from "../metering/charge.ts";
import type { ChargedTokens } from "../metering/pricing.ts";
import { hashesToRemember } from "../request/opaque.ts";
import type { Closing, Intent, Told, UsageStore } from "../store/store.ts";
import type { Budgets } from "./budget.ts";
import type { TextHolds } from "./text-holds.ts";

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
  /** Work for which the end of the process waits. */
  ending: Pick<UnderWay<object>, "began" | "ended">;
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
  readonly intent: Intent;
  readonly cover: Cover;
  /** The limit of its key. Undefined: none. */
  readonly keyLimit: KeyLimit | undefined;
  /** Its record. Closing adds its end. */
  readonly told: Told;
  /** The checkpoint that is being written. Undefined: none. */
  readonly checking: Promise<unknown> | undefined;
  /** The charge by billing. Undefined until its answer has come. */
  charged: bigint | undefined;
}

/** The end of a request, while it is written down and charged. */
interface Ending {
  end: End;
  closing: Closing;
  estimate: ChargedTokens | undefined;
  /** Notes that are being written. Undefined: none. */
  noted: Promise<unknown> | undefined;
  /** Is its row written? */
  isWritten: boolean;
}

/** The result of closing. */
export interface Finished {
  /** False where this process had lost the request before. */
  isOurs: boolean;
  /** The charged tokens, where genmesh counted them itself. Undefined: the upstream reported them, or nothing is charged. */
  estimate?: ChargedTokens | undefined;
  /** USD micros that are charged. Undefined where another process decided them. */
  cost?: bigint | undefined;
}

/** Another process has the request, and decides its charge. */
export const notOurs: Finished = { isOurs: false };

/**
 * Ends a request of this process, and charges it. Resolves once its last event may be sent. Then it is charged, or its charge is in a
 * row that billing's question will find, and follows in the background. It is not ours where another process decided otherwise, or the
 * hold can no longer be charged.
 */
export function closeRequest(
  { end, closing: decided, disbelieved, estimate }: Decision,
  request: EndingRequest,
  context: ClosingContext,
): Promise<Finished> {
  const { intent, told } = request;
  if (end.finishReason) told.finishReason = end.finishReason;
  if (end.failure) told.failure = end.failure;
  if (end.opaque?.upstream) told.upstream = end.opaque.upstream;
  const closing = { ...decided, told };
  const hasNotes = disbelieved !== undefined || (end.opaque && end.opaque.values.length > 0);
  const noted = hasNotes
    ? Promise.all([
        rememberOpaque(end, intent, context),
        disbelieved && noteReview(disbelieved, closing, intent, context),
      ])
    : undefined;
  const ending = { end, closing, estimate, noted, isWritten: false };
  if (intent.idempotency === undefined) return charge(ending, request, context);
  // The row is written before a caller gets the end of its answer. If this process died otherwise, a repeat would not find the answer,
  // and it would be generated and charged again. A request without an idempotency key needs no row.
  return writeClosing(closing, request, context).then((isWritten) => {
    ending.isWritten = isWritten;
    return isWritten ? charge(ending, request, context) : lost(request, context);
  });
}

function lost({ intent }: EndingRequest, { events }: ClosingContext): Finished {
  events.lost(intent);
  return notOurs;
}

/** Charges a request, and waits some time for that. It is ours where it is, or will be, charged as decided. */
function charge(
  ending: Ending,
  request: EndingRequest,
  context: ClosingContext,
): Promise<Finished> {
  const { end, closing, estimate, noted } = ending;
  const { budgets, events } = context;
  const drawing = drawCharge(ending, request, context);
  const work = noted ? Promise.all([noted, drawing]) : drawing;
  let isLate = false;
  const judge = (): Awaitable<Finished> => {
    const { charged } = request;
    if (charged === undefined && !isLate) {
      isLate = true;
      return chargeLate(drawing, ending, request, context).then(judge);
    }
    const cost = closing.charge.amount ?? 0n;
    const isOurs = charged === undefined ? isSafe(ending, request) : charged === cost;
    if (!isOurs) return lost(request, context);
    events.closed(request.intent, end.kind, closing.charge);
    return { isOurs, estimate, cost };
  };
  return budgets.within<unknown, Finished>(work, judge);
}

/** Has its row what billing needs? Billing asks before it closes the hold, and finds a row that was early. */
function isSafe({ isWritten }: Ending, { cover }: EndingRequest): boolean {
  return isWritten && cover.row === "early";
}

/** Sees to a charge that takes long: it is written down, or its outcome is waited for. */
async function chargeLate(
  drawing: Promise<void>,
  ending: Ending,
  request: EndingRequest,
  context: ClosingContext,
): Promise<void> {
  const { background } = context;
  background(drawing);
  if (!ending.isWritten) {
    const writing = writeClosing(ending.closing, request, context).then((written) => {
      ending.isWritten = written;
    });
    background(writing);
    await Promise.race([drawing, writing]);
  }
  // Billing may have closed the hold meanwhile. Then only the call to billing shows what became of the charge.
  if (request.charged === undefined && !isSafe(ending, request)) await drawing;
}

/** Calls billing until the outcome is known, and notes what was charged. Nothing where that is left to the sweep, or given up. */
function drawCharge(
  ending: Ending,
  request: EndingRequest,
  context: ClosingContext,
): Promise<void> {
  const { end, closing } = ending;
  const { intent, cover, told, keyLimit } = request;
  const { background, clock, events, holds } = context;
  const notes = { told, status: end.kind, endedAt: clock.now(), fromFree: { keyLimit } };
  const giveUpAt = clock.steady() + leaseMs;
  const drawn = (charged: bigint) => {
    request.charged = charged;
    if (cover.row !== "none") background(finishRow(charged, request, context));
  };
  const failed = async (error: unknown): Promise<void> => {
    const isAway = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
    const isLeft = isSafe(ending, request);
    if (!isLeft && isAway && clock.steady() < giveUpAt) {
      await clock.sleep(closeRetryMs);
      return holds.draw(intent, closing.charge, notes).then(drawn, failed);
    }
    const left = isLeft ? "is left to the sweeper" : "could not be charged";
    events.trouble(`a request ${left}`, intent.requestId, error);
  };
  return holds.draw(intent, closing.charge, notes).then(drawn, failed);
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
