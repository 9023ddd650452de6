// Finds the recorded answer of an idempotency key, and waits where another process still makes it. `joins.ts` covers requests of
// this process.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import { waitElsewhereMs, waitPollMs, waitRetryMs } from "../base/limits.ts";
import type { IdempotencySlot, KeyedRecord, UsageStore } from "../store/store.ts";

/** A kept answer, and the properties of its request that had no effect. */
export interface FoundAnswer {
  body: Uint8Array;
  /** USD micros that were charged. Undefined where the charge is not decided. */
  cost: bigint | undefined;
  ignored: readonly string[];
}

/**
 * The kept answer of an idempotency slot. Undefined where the slot is free. An answer that is still being made, here or in another
 * process, is waited for. Refuses with IDEMPOTENCY_KEY_REUSED for another body, and with IDEMPOTENCY_ANSWER_NOT_KEPT where the answer
 * was too large. Refuses with SERVICE_UNAVAILABLE after 40 s.
 */
export async function findKeptAnswer(
  slot: IdempotencySlot,
  fingerprint: string,
  { clock, store }: { clock: Clock; store: UsageStore },
  signal: AbortSignal,
): Promise<FoundAnswer | undefined> {
  const giveUpAt = clock.steady() + waitElsewhereMs;
  for (;;) {
    signal.throwIfAborted();
    const record = await store.findByKey(slot, clock.now());
    if (!record) return undefined;
    if (record.fingerprint !== fingerprint) refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
    if (record.answer === "not_kept") refuseUnkept(record);
    if (record.answer) {
      const { answer: body, cost, ignored = [] } = record;
      return { body, cost, ignored };
    }
    if (clock.steady() >= giveUpAt) {
      refuse(ErrorReason.SERVICE_UNAVAILABLE, {
        metadata: { retry_after_ms: String(waitRetryMs) },
      });
    }
    await clock.sleep(waitPollMs, signal);
  }
}

/** The caller got its answer, and paid for it. Generating another would cost the same again. */
function refuseUnkept({ requestId, answerId = requestId, cost }: KeyedRecord): never {
  refuse(ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT, {
    metadata: { request_id: answerId, ...(cost === undefined ? {} : { cost: `${cost}` }) },
  });
}
