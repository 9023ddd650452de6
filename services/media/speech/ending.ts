import { ErrorReason, isRefusal } from "#kit/errors.ts";
import { HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import type { SpeechRecord } from "./store.ts";

/**
 * Ends a request that is `settling` or `releasing`: its hold first, then its record. May be repeated, by anyone, after any
 * of its steps.
 */
export async function endSpeech(record: SpeechRecord, context: SpeechContext): Promise<void> {
  const { store, blobs, retentionMs } = context;
  const { speechId, openedAt, status } = record;
  if (status === "settling") await settle(record, context);
  if (status === "releasing") {
    await release(record, context);
    // Stored perhaps, by a process that died before it could say so.
    await blobs.delete(blobKeyOf(speechId));
  }
  await store.finish(speechId, retentionMs === undefined ? undefined : openedAt + retentionMs);
}

async function settle(record: SpeechRecord, { holds, events }: SpeechContext): Promise<void> {
  const { accountId, speechId: holdId, amount } = record;
  const { state } = await holds.settle({ accountId, unit: Unit.USD_MICROS, holdId, amount });
  if (state !== HoldState.SETTLED) {
    events.trouble("a hold was ended by somebody else", holdId, undefined);
  }
}

async function release(record: SpeechRecord, { holds }: SpeechContext): Promise<void> {
  const { accountId, speechId: holdId } = record;
  try {
    await holds.release({ accountId, unit: Unit.USD_MICROS, holdId });
  } catch (error) {
    // Its opening never arrived. Should it still come, billing asks for it and is told to release it.
    if (!isRefusal(error, ErrorReason.HOLD_NOT_FOUND)) throw error;
  }
}

/** Resolves when `work` has ended, or after `budgetMs`; it then goes on behind. Never rejects. */
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
