import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/mongo/errors.ts";
import { maxBeginTries } from "./limits-mongo.ts";
import type { Begun, NewFile } from "./store.ts";
import { documentOf, fileOf, withoutPins } from "./store-mongo-docs.ts";
import type { FileDocument } from "./store-mongo-schema.ts";

/**
 * Writes a file where nothing stands in its way. Unique indexes have the last word about its id, its slot and imports of the
 * same bytes; an upload of the same bytes that becomes `ready` in this very moment does not count as earlier.
 */
export async function beginFile(
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

/** False where something stands in its way; whether that is itself shows the next look. */
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
