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
 * A request with all that is known of it: each of its transitions is one write of this document. It is due at `dueAt`
 * while it lives (its lease is over, or it is to be tried again), and kept until `keptUntil` once it is closed.
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
  /** Beside the answer. */
  ignored?: readonly string[];
}

/** Answers are large, and most readers want none. */
export const withoutAnswer = { projection: { answer: 0 } } as const;

/** Is its answer past its time? */
export function isOver({ keptUntil }: UsageDocument, now: number): boolean {
  return keptUntil !== undefined && keptUntil <= now;
}

/** Who some opaque state was made for. */
export interface MakerDocument {
  /** `<hash>:<account>` */
  _id: string;
  hash: string;
  accountId: string;
  upstream: string;
  until: number;
}

/** A review, until its time is over. */
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
  /** By the time until which they count, in ms since the epoch. */
  bytes: Record<string, number | bigint>;
  /** The last of those times. */
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

/** What the text service keeps in MongoDB. */
export const textMongoSchema: MongoSchema = {
  component: "text",
  indexes,
  steps: [indexStep(indexes)],
};

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
