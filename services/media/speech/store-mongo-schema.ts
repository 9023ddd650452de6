import type { ObjectId } from "mongodb";
import { indexStep, type MongoSchema } from "#kit/mongo/migrate.ts";
import type { SpeechRecord } from "./store.ts";

/** The collection of speech. */
export const speechCollection = "media_speech";

/**
 * A speech request: each of its transitions is one write of its document. While it is `open`, `dueAt` is its lease, and once
 * it is `closed`, the end of its keeping; absent: it is kept for ever.
 */
export interface SpeechDocument
  extends Omit<SpeechRecord, "speechId" | "leaseUntil" | "idempotency"> {
  /** The speech id. */
  _id: string;
  dueAt?: number;
  idem?: { key: string; fingerprint: string };
  /** Drawn by the call that closed it: by this it knows its own write where the answer was lost. */
  closing?: ObjectId;
}

const indexes: MongoSchema["indexes"] = {
  [speechCollection]: [
    {
      name: "idem",
      key: { keyId: 1, "idem.key": 1 },
      unique: true,
      partial: { "idem.key": { $exists: true } },
    },
    { name: "due", key: { dueAt: 1 }, partial: { dueAt: { $exists: true } } },
    { name: "at_work", key: { status: 1, dueAt: 1 } },
  ],
};

/** What speech keeps in MongoDB. */
export const speechMongoSchema: MongoSchema = {
  component: "media_speech",
  indexes,
  steps: [indexStep(indexes)],
};

/** An intent as it is first written. */
export function documentOf(
  intent: Omit<SpeechRecord, "status" | "audio">,
): SpeechDocument & { dueAt: number } {
  const { speechId, leaseUntil, idempotency, ...rest } = intent;
  return {
    _id: speechId,
    ...rest,
    status: "open",
    dueAt: leaseUntil,
    ...(idempotency ? { idem: { ...idempotency } } : {}),
  };
}

/** A request as it stands. */
export function recordOf(doc: SpeechDocument): SpeechRecord {
  const { _id, dueAt, idem, closing: _closing, ...rest } = doc;
  return {
    speechId: _id,
    ...rest,
    leaseUntil: doc.status === "open" ? (dueAt ?? 0) : 0,
    ...(idem ? { idempotency: idem } : {}),
  };
}
