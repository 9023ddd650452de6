// The documents of text's store in MongoDB, and their indexes. Here a record becomes a document and back.

import type { Binary } from "mongodb";
import { mongodb } from "#kit/store/mongo/driver.ts";
import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import type { Charge, Closing, Intent, KeyedRecord, Review, UsageRecord } from "./store.ts";

/** Collections of the text service. */
export const textCollections = {
  usage: "text_usage",
  makers: "text_maker",
  reviews: "text_review",
  kept: "text_kept",
} as const;

/**
 * A request with all known facts about it. Each of its transitions is one write of this document. Until the request is closed, it
 * is due at `dueAt`: its lease ends, or its charge is tried again. A closed request is kept until `keptUntil`.
 */
export interface UsageDocument
  extends Omit<UsageRecord, "requestId" | "leaseUntil" | "idempotency" | "charge"> {
  /** The request id. */
  _id: string;
  dueAt?: number;
  keptUntil?: number;
  idem?: { key: string; fingerprint: string };
  charge?: Omit<Charge, "amount"> & { amount: bigint | null };
  answer?: Binary;
  /** Stored with the answer. */
  ignored?: readonly string[];
}

/** Leaves answers out. They are large, and most reads do not need them. */
export const withoutAnswer = { projection: { answer: 0 } } as const;

/** Has the time of the request's answer ended? */
export function isOver({ keptUntil }: UsageDocument, now: number): boolean {
  return keptUntil !== undefined && keptUntil <= now;
}

/** An account that got opaque state, and the upstream that made it. */
export interface MakerDocument {
  /** `<hash>:<account>` */
  _id: string;
  hash: string;
  accountId: string;
  upstream: string;
  until: number;
}

/** A review, until its time has ended. */
export interface ReviewDocument extends Omit<Review, "requestId" | "charged"> {
  /** The request id. */
  _id: string;
  charged: bigint;
  until: number;
}

/** The bytes of an account's kept answers. */
export interface KeptDocument {
  /** The account id. */
  _id: string;
  /** Bytes by the time until which they count, in ms since the epoch. */
  bytes: Record<string, number | bigint>;
  /** The latest of those times. */
  until: number;
}

const indexes: MongoSchema["indexes"] = {
  [textCollections.usage]: [
    {
      name: "idem",
      key: { keyId: 1, operation: 1, "idem.key": 1 },
      unique: true,
      partial: { "idem.key": { $exists: true } },
    },
    { name: "due", key: { dueAt: 1 }, partial: { dueAt: { $exists: true } } },
    { name: "kept", key: { keptUntil: 1 }, partial: { keptUntil: { $exists: true } } },
    { name: "review", key: { closedAt: 1, _id: 1 }, partial: { status: "review" } },
  ],
  [textCollections.makers]: [
    { name: "hash", key: { hash: 1 } },
    { name: "until", key: { until: 1 } },
  ],
  [textCollections.reviews]: [{ name: "until", key: { until: 1 } }],
  [textCollections.kept]: [{ name: "until", key: { until: 1 } }],
};

/** The schema of the text service in MongoDB. */
export const textMongoSchema: MongoSchema = {
  component: "text",
  indexes,
  steps: [indexStep(indexes)],
};

/** The first document of an intent. */
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

/** The request in a document. */
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

/** The request in an idempotency slot. A request that is not open is in a slot only where an answer was given. */
export function keyedOf({
  _id,
  idem,
  status,
  answer,
  charge,
  ignored,
  told,
}: UsageDocument): KeyedRecord {
  return {
    requestId: _id,
    ...(told?.answerId === undefined ? {} : { answerId: told.answerId }),
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

/** Was the request closed in exactly this way? */
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
