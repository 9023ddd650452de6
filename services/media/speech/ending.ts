import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import type { SpeechRecord } from "./store.ts";

/** How a speech ended, as the journal tells it: "lost" with its process, "left" by its caller, or "unsent" to an upstream. */
export type DrawnStatus = "completed" | "failed" | "left" | "lost" | "unsent";

/**
 * Charges a request whose end is written down, and ends its hold: a `settling` one costs its amount, any other nothing. Any
 * process may, at any time, also several at once: the first draw decides.
 */
export async function drawSpeech(
  record: SpeechRecord,
  status: DrawnStatus,
  { clock, holds, events }: SpeechContext,
): Promise<void> {
  const { speechId: requestId, accountId, keyId } = record;
  const isCharged = record.status === "settling";
  const amount = isCharged ? record.amount : 0n;
  const charged = await holds.draw(
    { requestId, accountId, keyId },
    {
      amount,
      record: {
        model: record.modelId,
        operation: "speech",
        status,
        characters: isCharged ? BigInt(record.characters) : 0n,
        mediaMs: BigInt(Math.round((record.audio?.durationSeconds ?? 0) * 1_000)),
        requestId: record.requestId ?? "",
        startTime: timestampFromMs(record.openedAt),
        endTime: timestampFromMs(clock.now()),
      },
    },
  );
  if (charged !== amount) events.trouble("a hold was ended by an operator", requestId, undefined);
}

/** What is left to do once the charge is drawn. May be repeated by any process. */
export async function finishSpeech(
  { speechId, openedAt, status }: SpeechRecord,
  { store, blobs, retentionMs }: SpeechContext,
): Promise<void> {
  // Stored perhaps, by a process that died before it could say so.
  if (status === "releasing") await blobs.delete(blobKeyOf(speechId));
  await store.finish(speechId, retentionMs === undefined ? undefined : openedAt + retentionMs);
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
