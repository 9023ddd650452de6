// The store of account files in MongoDB. `store-mongo-pins.ts` keeps which jobs use them.

import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { mongodb } from "#kit/store/mongo/driver.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import type { AccountFile } from "./file.ts";
import { maxBeginTries } from "./limits.ts";
import type { Begun, FilePage, FileStore, NewFile } from "./store.ts";
import {
  documentOf,
  type FileDocument,
  fileOf,
  filesCollection,
  withoutPins,
} from "./store-mongo-docs.ts";
import { pinFile, pinnedBy, unpinAll } from "./store-mongo-pins.ts";

/** The files in MongoDB. A file is a document with its pins, and each transition is a write of it under a condition. */
export function createMongoFileStore(db: MongoDatabase): FileStore {
  const files = db.collection<FileDocument>(filesCollection);
  const findOne = (filter: Filter<FileDocument>): Promise<AccountFile | undefined> =>
    db.attempt(async () => {
      const doc = await files.findOne(filter, withoutPins);
      return doc ? fileOf(doc) : undefined;
    });
  return {
    begin: (file) => beginFile(db, files, file),
    publish: ({ fileId, storageId }) =>
      db.attempt(async () => {
        const attempt = { _id: fileId, storageId };
        const { matchedCount } = await files.updateOne(
          { ...attempt, state: "storing" },
          { $set: { state: "ready" }, $unset: { dueAt: "" } },
        );
        if (matchedCount === 1) return true;
        return (await files.findOne({ ...attempt, state: "ready" }, onlyId)) !== null;
      }),
    async drop({ fileId, storageId }, now) {
      const dropped = { _id: fileId, storageId, state: "storing" } as const;
      return (await end(db, files, dropped, { dueAt: now, pins: [] })) !== undefined;
    },
    remove: (accountId, fileId, now) =>
      end(db, files, { _id: fileId, accountId, state: "ready" }, { dueAt: now }),
    erase: ({ fileId, storageId }, keepUntil) =>
      db.attempt(async () => {
        await files.updateOne(
          { _id: fileId, storageId, state: "deleted" },
          { $set: { state: "gone", fileName: "", goneUntil: keepUntil }, $unset: { dueAt: "" } },
        );
      }),
    defer: ({ fileId, storageId }, dueAt) =>
      db.attempt(async () => {
        await files.updateOne({ _id: fileId, storageId, state: "deleted" }, { $set: { dueAt } });
      }),
    pin: (accountId, fileId, pin) => db.attempt(() => pinFile(files, accountId, fileId, pin)),
    pinned: (jobId) => db.attempt(() => pinnedBy(files, jobId)),
    pinsOf: (fileId) =>
      db.attempt(async () => {
        const doc = await files.findOne({ _id: fileId }, { projection: { pins: 1 } });
        return [...new Set(doc?.pins.map(({ jobId }) => jobId))];
      }),
    unpin: (jobId, now) => db.attempt(() => unpinAll(files, jobId, now)),
    find: (accountId, fileId) => findOne({ _id: fileId, accountId }),
    findBySlot: ({ keyId, key }) =>
      db.attempt(async () => {
        const slot = { "idem.keyId": keyId, "idem.key": key };
        const doc = await files.findOne(slot, withoutPins);
        return doc ? { file: fileOf(doc), fingerprint: doc.idem?.fingerprint ?? "" } : undefined;
      }),
    count: (accountId) => db.attempt(() => files.countDocuments({ accountId, state: "ready" })),
    async list(accountId, page) {
      const from =
        page.after === undefined ? undefined : await findOne({ _id: page.after, accountId });
      if (page.after !== undefined && (!from || from.state === "storing")) return undefined;
      return db.attempt(() => list(files, accountId, page, from));
    },
    isReferenced: (storageId) =>
      db.attempt(async () => {
        return (await files.findOne({ storageId, state: { $ne: "gone" } }, onlyId)) !== null;
      }),
    due: (now, limit) =>
      db.attempt(async () => {
        const cursor = files.find({ dueAt: { $lte: now } }, withoutPins).sort({ dueAt: 1 });
        return (await cursor.limit(limit).toArray()).map(fileOf);
      }),
    forget: (now, limit) => db.attempt(() => forget(files, now, limit)),
  };
}

const onlyId = { projection: { _id: 1 } } as const;

/**
 * Writes a file where no other file conflicts. Unique indexes decide about its id, its slot and imports of the same bytes. An upload of
 * the same bytes that becomes `ready` in this very moment does not count as earlier.
 */
async function beginFile(
  db: MongoDatabase,
  files: Collection<FileDocument>,
  file: NewFile,
): Promise<Begun> {
  for (let tries = 0; tries < maxBeginTries; tries++) {
    const old = await db.attempt(() => files.findOne({ _id: file.fileId }, withoutPins));
    if (old?.storageId === file.storageId) return { kind: "begun" };
    const taken = old && old.state !== "gone" ? old : await inItsPlace(db, files, file);
    if (taken) return { kind: "taken", file: fileOf(taken), fingerprint: taken.idem?.fingerprint };
    if (await write(db, files, file, old?.storageId)) return { kind: "begun" };
  }
  throw awayRefusal(new Error("a file stands in the way that cannot be seen"));
}

/** False where another file conflicts. The next look shows whether that is this file itself. */
function write(
  db: MongoDatabase,
  files: Collection<FileDocument>,
  file: NewFile,
  goneStorageId: string | undefined,
): Promise<boolean> {
  const doc = documentOf(file);
  return db.attempt(async () => {
    try {
      if (goneStorageId === undefined) {
        await files.insertOne(doc);
        return true;
      }
      const gone = { _id: doc._id, state: "gone", storageId: goneStorageId } as const;
      const { matchedCount } = await files.replaceOne(gone, doc);
      return matchedCount === 1;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  });
}

function inItsPlace(
  db: MongoDatabase,
  files: Collection<FileDocument>,
  { idempotency, origin, accountId, sha256 }: NewFile,
): Promise<FileDocument | null> {
  return db.attempt(async () => {
    if (idempotency) {
      const { keyId, key } = idempotency;
      return files.findOne({ "idem.keyId": keyId, "idem.key": key }, withoutPins);
    }
    if (origin !== "import") return null;
    return (
      (await files.findOne({ accountId, sha256, state: "ready" }, withoutPins)) ??
      (await files.findOne({ accountId, importOf: sha256 }, withoutPins))
    );
  });
}

/** Changes the state to `deleted` and frees the file's slots. Answers the file, or undefined where it does not match `filter`. */
function end(
  db: MongoDatabase,
  files: Collection<FileDocument>,
  filter: { _id: string } & Filter<FileDocument>,
  set: Partial<FileDocument>,
): Promise<AccountFile | undefined> {
  const ending = new (mongodb().ObjectId)();
  return db.attempt(async (unsure) => {
    const doc = await files.findOneAndUpdate(
      filter,
      {
        $set: { ...set, state: "deleted", ending },
        $unset: { idem: "", importOf: "" },
      },
      { returnDocument: "after", ...withoutPins },
    );
    if (doc) return fileOf(doc);
    // Another process may have changed it since our attempt that got no answer.
    const own = unsure ? await files.findOne({ _id: filter._id, ending }, withoutPins) : null;
    return own ? { ...fileOf(own), state: "deleted" } : undefined;
  });
}

async function list(
  files: Collection<FileDocument>,
  accountId: string,
  { purpose, limit, ascending }: FilePage,
  from: AccountFile | undefined,
): Promise<AccountFile[]> {
  const direction = ascending ? 1 : -1;
  const cursor = files
    .find(
      {
        accountId,
        state: "ready",
        ...(purpose === undefined ? {} : { purpose }),
        ...(from ? behind(from, ascending) : {}),
      },
      withoutPins,
    )
    .sort({ createdAt: direction, _id: direction })
    .limit(limit);
  return (await cursor.toArray()).map(fileOf);
}

function behind({ createdAt, fileId }: AccountFile, ascending: boolean): Filter<FileDocument> {
  return ascending
    ? {
        createdAt: { $gte: createdAt },
        $or: [{ createdAt: { $gt: createdAt } }, { _id: { $gt: fileId } }],
      }
    : {
        createdAt: { $lte: createdAt },
        $or: [{ createdAt: { $lt: createdAt } }, { _id: { $lt: fileId } }],
      };
}

async function forget(
  files: Collection<FileDocument>,
  now: number,
  limit: number,
): Promise<number> {
  const over = { goneUntil: { $lte: now } };
  const docs = await files.find(over, onlyId).limit(limit).toArray();
  if (docs.length === 0) return 0;
  const ids = docs.map(({ _id }) => _id);
  await files.deleteMany({ _id: { $in: ids }, ...over });
  // Includes those that another process deleted meanwhile. A full batch means that there may be more.
  return ids.length;
}
