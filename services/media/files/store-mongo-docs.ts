// Declares the documents and indexes of account files in MongoDB, and turns them into files and back.

import type { ObjectId } from "mongodb";
import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import type { AccountFile } from "./file.ts";
import type { JobPin, NewFile, UploadSlot } from "./store.ts";

/** The collection of the account files. */
export const filesCollection = "media_file";

/** A pin in the document of its file. */
export interface PinDocument extends JobPin {
  /** Above those of all earlier files that the job used under this index. The highest is in force. */
  n: number;
}

/** A file with the jobs that use it. Each of its transitions is one write of its document. */
export interface FileDocument extends Omit<AccountFile, "fileId"> {
  /** The file id. */
  _id: string;
  /** For a `storing` file: the end of its lease. For a `deleted` one: the time of the next look. */
  dueAt?: number;
  /** For a `gone` file: the time until which it keeps its place. */
  goneUntil?: number;
  /** For an upload that is `storing` or `ready`. */
  idem?: UploadSlot & { fingerprint: string };
  /** The digest of an import that is `storing` or `ready`. */
  importOf?: string;
  pins: PinDocument[];
  /** Made by the call that dropped or removed it. With it the call recognises its own write where the answer was lost. */
  ending?: ObjectId;
}

const isReady = { state: "ready" };
const indexes: MongoSchema["indexes"] = {
  [filesCollection]: [
    { name: "storage", key: { storageId: 1 }, unique: true },
    {
      name: "idem",
      key: { "idem.keyId": 1, "idem.key": 1 },
      unique: true,
      partial: { "idem.key": { $exists: true } },
    },
    {
      name: "import",
      key: { accountId: 1, importOf: 1 },
      unique: true,
      partial: { importOf: { $exists: true } },
    },
    { name: "bytes", key: { accountId: 1, sha256: 1 }, partial: isReady },
    { name: "list", key: { accountId: 1, createdAt: 1, _id: 1 }, partial: isReady },
    { name: "purpose", key: { accountId: 1, purpose: 1, createdAt: 1, _id: 1 }, partial: isReady },
    { name: "due", key: { dueAt: 1 }, partial: { dueAt: { $exists: true } } },
    { name: "gone", key: { goneUntil: 1 }, partial: { goneUntil: { $exists: true } } },
    { name: "pins", key: { "pins.jobId": 1 }, partial: { "pins.jobId": { $exists: true } } },
  ],
};

/** The collection of the account files in MongoDB. */
export const filesMongoSchema: MongoSchema = {
  component: "media_files",
  indexes,
  steps: [indexStep(indexes)],
};

/** For reads of files, because a file may have thousands of pins. */
export const withoutPins = { projection: { pins: 0 } } as const;

/** A new file's document. */
export function documentOf(file: NewFile): FileDocument {
  const { fileId, leaseUntil, idempotency, pin, ...facts } = file;
  return {
    _id: fileId,
    ...facts,
    state: "storing",
    dueAt: leaseUntil,
    ...(idempotency ? { idem: { ...idempotency } } : {}),
    ...(file.origin === "import" ? { importOf: file.sha256 } : {}),
    pins: pin ? [{ ...pin, n: 0 }] : [],
  };
}

/** The file in a document, which may have been read without its pins. */
export function fileOf(doc: Omit<FileDocument, "pins">): AccountFile {
  return {
    fileId: doc._id,
    accountId: doc.accountId,
    origin: doc.origin,
    state: doc.state,
    storageId: doc.storageId,
    fileName: doc.fileName,
    purpose: doc.purpose,
    mimeType: doc.mimeType,
    sizeBytes: doc.sizeBytes,
    sha256: doc.sha256,
    width: doc.width,
    height: doc.height,
    createdAt: doc.createdAt,
  };
}
