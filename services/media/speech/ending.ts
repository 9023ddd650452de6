// Charges an ended speech request and ends its hold. The process that ran the request does this, or the sweeper for one that
// died.

import { errorRow, isRefusal } from "#kit/base/errors.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import type { SpeechRecord } from "./store.ts";

/**
 * The end of a speech, as the journal names it. A "lost" one ended with its process, a "left" one had no caller any more. An "unsent"
 * one never reached an upstream.
 */
export type DrawnStatus = "completed" | "failed" | "left" | "lost" | "unsent";

/**
 * Charges a request whose end is stored, and ends its hold. A `settling` request costs its amount, any other nothing. Any process may
 * do this at any time, also several at once. The first charge decides. `error`: what its caller got instead of a speech.
 */
export async function drawSpeech(
  record: SpeechRecord,
  status: DrawnStatus,
  { clock, holds, events }: SpeechContext,
  error?: unknown,
): Promise<void> {
  const { speechId: holdId, accountId, keyId } = record;
  const isCharged = record.status === "settling";
  const amount = isCharged ? record.amount : 0n;
  const charged = await holds.draw({
    ...{ accountId, unit: Unit.USD_MICROS, holdId, keyId, amount },
    record: {
      model: record.modelId,
      operation: "speech",
      upstream: record.tries?.upstream,
      failedTries: record.tries?.failed,
      status,
      characters: isCharged ? record.characters : 0,
      mediaMs: Math.round((record.audio?.durationSeconds ?? 0) * 1_000),
      requestId: record.requestId,
      failure: isRefusal(error) ? { code: errorRow(error.reason).code } : undefined,
      startMs: record.openedAt,
      endMs: clock.now(),
    },
  });
  if (charged !== amount) events.trouble("a hold was ended by an operator", holdId, undefined);
}

/** Does the rest after the charge. Any process may repeat it. */
export async function finishSpeech(
  { speechId, openedAt, status }: SpeechRecord,
  { store, blobs, retentionMs }: SpeechContext,
): Promise<void> {
  // The speech may be stored by a process that died before it could note that.
  if (status === "releasing") await blobs.delete(blobKeyOf(speechId));
  await store.finish(speechId, retentionMs === undefined ? undefined : openedAt + retentionMs);
}

/** Resolves when `work` has ended, or after `budgetMs`. The work then continues in the background. Never rejects. */
export async function withinBudget(
  work: Promise<unknown>,
  budgetMs: number,
  { clock }: Pick<SpeechContext, "clock">,
): Promise<void> {
  const done = new AbortController();
  const ignore = () => {};
  const late = clock.sleep(budgetMs, done.signal).then(ignore, ignore);
  await Promise.race([work.then(ignore, ignore), late]);
  done.abort();
}
