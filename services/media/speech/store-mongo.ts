import type { Collection, Filter, ObjectId } from "mongodb";
import { longestDueMs } from "#common/paid-work/limits.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { mongodb } from "#kit/store/mongo/driver.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import type {
  SpeechAudio,
  SpeechCloser,
  SpeechClosing,
  SpeechIntent,
  SpeechRecord,
  SpeechStore,
} from "./store.ts";

/** The collection of speech. */
export const speechCollection = "media_speech";

/**
 * A speech request: each of its transitions is one write of its document. While it is `open`, `dueAt` is its lease, and once
 * it is `closed`, the end of its keeping; absent: it is kept for ever.
 */
export interface SpeechDocument
  extends Omit<SpeechRecord, "speechId" | "leaseUntil" | "idempotency" | "audio"> {
  /** The speech id. */
  _id: string;
  dueAt?: number;
  /** An earlier release wrote no format: its sounds are MP3. */
  audio?: Omit<SpeechAudio, "format"> & Partial<Pick<SpeechAudio, "format">>;
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
    { name: "of_key", key: { keyId: 1, status: 1 } },
    { name: "at_work", key: { status: 1, dueAt: 1 } },
  ],
};

/** What speech keeps in MongoDB. */
export const speechMongoSchema: MongoSchema = {
  component: "media_speech",
  indexes,
  steps: [indexStep(indexes)],
};

/** Speech requests in MongoDB: a request is a document, and each transition a write of it under a condition. */
export function createMongoSpeechStore(db: MongoDatabase): SpeechStore {
  const speech = db.collection<SpeechDocument>(speechCollection);
  const remove = (filter: Filter<SpeechDocument>): Promise<void> =>
    db.attempt(async () => {
      await speech.deleteOne(filter);
    });
  return {
    open: (intent) => db.attempt(() => open(speech, intent)),
    beat: (speechId, owner, leaseUntil) =>
      db.attempt(async () => {
        const { matchedCount } = await speech.updateOne(
          { _id: speechId, owner, status: "open" },
          { $set: { dueAt: leaseUntil } },
        );
        return matchedCount === 1;
      }),
    close(speechId, closer, closing, dueAt) {
      const id = new (mongodb().ObjectId)();
      return db.attempt((unsure) =>
        close(speech, { speechId, closer, closing, dueAt, id, unsure }),
      );
    },
    finish: (speechId, expireAt) =>
      db.attempt(async () => {
        const { matchedCount } = await speech.updateOne(
          { _id: speechId, status: "settling", audio: { $exists: true } },
          expireAt === undefined
            ? { $set: { status: "closed" }, $unset: { dueAt: "" } }
            : { $set: { status: "closed", dueAt: expireAt } },
        );
        if (matchedCount > 0) return;
        await speech.deleteOne({ _id: speechId, status: { $in: ["settling", "releasing"] } });
      }),
    withdraw: (speechId, owner) => remove({ _id: speechId, owner, status: "open" }),
    forget: (speechId) => remove({ _id: speechId, status: "closed" }),
    defer: (speechId, dueAt) =>
      db.attempt(async () => {
        await speech.updateOne({ _id: speechId, status: { $ne: "open" } }, { $set: { dueAt } });
      }),
    bringForward: (now, at) =>
      db.attempt(async () => {
        const status = { $in: ["open", "settling", "releasing"] as const };
        const putOff = { status, dueAt: { $gt: now + longestDueMs } } as Filter<SpeechDocument>;
        await speech.updateMany(putOff, { $set: { dueAt: at } });
      }),
    find: (speechId) =>
      db.attempt(async () => {
        const doc = await speech.findOne({ _id: speechId });
        return doc ? recordOf(doc) : undefined;
      }),
    findBySlot: ({ keyId, key }) =>
      db.attempt(async () => {
        const doc = await speech.findOne({ keyId, "idem.key": key });
        return doc ? recordOf(doc) : undefined;
      }),
    closedOf: (keyIds, limit) =>
      db.attempt(async () => {
        const filter = { keyId: { $in: [...keyIds] }, status: "closed" } as const;
        return (await speech.find(filter).limit(limit).toArray()).map(recordOf);
      }),
    due: (now, limit) =>
      db.attempt(async () => {
        const cursor = speech.find({ dueAt: { $lte: now } }).sort({ dueAt: 1 });
        return (await cursor.limit(limit).toArray()).map(recordOf);
      }),
  };
}

async function open(speech: Collection<SpeechDocument>, intent: SpeechIntent): Promise<boolean> {
  try {
    await speech.insertOne(documentOf(intent));
    return true;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  // In the way stands itself, or another request in its slot.
  const own = await speech.findOne({ _id: intent.speechId }, { projection: { _id: 1 } });
  return own !== null;
}

async function close(
  speech: Collection<SpeechDocument>,
  options: {
    speechId: string;
    closer: SpeechCloser;
    closing: SpeechClosing;
    dueAt: number;
    /** Of this call. */
    id: ObjectId;
    /** A close without an answer may have been carried out. */
    unsure: boolean;
  },
): Promise<boolean> {
  const { speechId, closer, closing, dueAt, id, unsure } = options;
  const mayClose =
    "owner" in closer ? { owner: closer.owner } : { dueAt: { $lte: closer.leaseOverAt } };
  const set = { status: closing.kind, dueAt, closing: id };
  const { matchedCount } = await speech.updateOne(
    { _id: speechId, status: "open", ...mayClose },
    closing.kind === "settling" && closing.audio
      ? { $set: { ...set, audio: { ...closing.audio } } }
      : { $set: set, $unset: { idem: "" } },
  );
  if (matchedCount === 1 || !unsure) return matchedCount === 1;
  const own = await speech.findOne({ _id: speechId, closing: id }, { projection: { _id: 1 } });
  return own !== null;
}

/** An intent as it is first written. */
function documentOf(
  intent: Omit<SpeechRecord, "status" | "audio">,
): SpeechDocument & { dueAt: number } {
  const { speechId, leaseUntil, idempotency, requestId: _told, ...rest } = intent;
  return {
    _id: speechId,
    ...rest,
    status: "open",
    dueAt: leaseUntil,
    ...(idempotency ? { idem: { ...idempotency } } : {}),
  };
}

/** A request as it stands. */
function recordOf(doc: SpeechDocument): SpeechRecord {
  const { _id, dueAt, idem, audio, closing: _closing, ...rest } = doc;
  return {
    speechId: _id,
    ...rest,
    ...(audio ? { audio: { ...audio, format: audio.format ?? "mp3" } } : {}),
    leaseUntil: doc.status === "open" ? (dueAt ?? 0) : 0,
    ...(idem ? { idempotency: idem } : {}),
  };
}
