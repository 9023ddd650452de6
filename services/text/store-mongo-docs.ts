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
    dispatched: true,
    dueAt: leaseUntil,
    ...(idempotency ? { idem: { ...idempotency } } : {}),
  };
}

/** A request as it stands. */
export function recordOf(doc: UsageDocument): UsageRecord {
  const { _id, dueAt, keptUntil, idem, charge, answer: _answer, ignored: _ignored, ...rest } = doc;
  return {
    requestId: _id,
    ...rest,
    leaseUntil: dueAt ?? keptUntil ?? 0,
    ...(idem ? { idempotency: idem } : {}),
    ...(charge ? { charge: { ...charge, amount: charge.amount ?? undefined } } : {}),
  };
}

/** What stands in a slot. A request that is over has a key only where an answer was given. */
export function keyedOf({
  _id,
  idem,
  status,
  answer,
  charge,
  ignored,
}: UsageDocument): KeyedRecord {
  return {
    requestId: _id,
    fingerprint: idem?.fingerprint ?? "",
    answer: answer ? bytesOf(answer) : status === "open" ? undefined : "not_kept",
    cost: charge && (charge.amount ?? 0n),
    ...(ignored ? { ignored } : {}),
  };
}

/** The fields that closing sets. */
export function closingFields(
  closing: Closing,
  at: { now: number; dueAt: number },
): Partial<UsageDocument> {
  const { kind, end, answer, ignored, told } = closing;
  return {
    status: kind,
    end,
    closedAt: at.now,
    dueAt: at.dueAt,
    charge: chargeDocument(closing.charge),
    ...(answer instanceof Uint8Array ? { answer: new (mongodb().Binary)(answer) } : {}),
    ...(ignored ? { ignored } : {}),
    ...(told ? { told } : {}),
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
