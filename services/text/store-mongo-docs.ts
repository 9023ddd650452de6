import type { Binary } from "mongodb";
import { mongodb } from "#kit/mongo/driver.ts";
import type { Charge, Closing, Intent, KeyedRecord, UsageRecord } from "./store.ts";
import type { UsageDocument } from "./store-mongo-schema.ts";

/** An intent as it is first written. */
export function documentOf(intent: Intent): UsageDocument {
  const { requestId, leaseUntil, idempotency, ...rest } = intent;
  return {
    _id: requestId,
    ...rest,
    status: "open",
    dispatched: false,
    outputTokens: 0,
    dueAt: leaseUntil,
    ...(idempotency ? { idem: { ...idempotency } } : {}),
  };
}

/** A request as it stands. */
export function recordOf(doc: UsageDocument): UsageRecord {
  const { _id, dueAt, keptUntil, idem, charge, answer: _answer, ...rest } = doc;
  return {
    requestId: _id,
    ...rest,
    leaseUntil: dueAt ?? keptUntil ?? 0,
    ...(idem ? { idempotency: idem } : {}),
    ...(charge ? { charge: { ...charge, amount: charge.amount ?? undefined } } : {}),
  };
}

/** What stands in a slot. */
export function keyedOf(doc: UsageDocument): KeyedRecord {
  return {
    requestId: doc._id,
    fingerprint: doc.idem?.fingerprint ?? "",
    answer: doc.answer && bytesOf(doc.answer),
  };
}

/** The fields that closing sets. */
export function closingFields(
  closing: Closing,
  at: { now: number; dueAt: number },
): Partial<UsageDocument> {
  const { kind, end, answer } = closing;
  return {
    status: kind,
    end,
    closedAt: at.now,
    dueAt: at.dueAt,
    charge: chargeDocument(closing.charge),
    ...(answer ? { answer: new (mongodb().Binary)(answer) } : {}),
  };
}

/** Does a document say that it was closed in just this way? */
export function isClosedAs(
  doc: UsageDocument,
  closing: Closing,
  at: { now: number; dueAt: number },
): boolean {
  const { charge, end, closedAt } = doc;
  const wanted = closingFields(closing, at);
  return (
    end === wanted.end && closedAt === wanted.closedAt && charge?.amount === wanted.charge?.amount
  );
}

function chargeDocument(charge: Charge): NonNullable<UsageDocument["charge"]> {
  return { ...charge, amount: charge.amount ?? null };
}

function bytesOf(binary: Binary): Uint8Array {
  return binary.buffer.subarray(0, binary.position);
}
