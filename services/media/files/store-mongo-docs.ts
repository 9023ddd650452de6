import type { AccountFile } from "./file.ts";
import type { NewFile } from "./store.ts";
import type { FileDocument } from "./store-mongo-schema.ts";

/** For reads of files: a file may have thousands of pins. */
export const withoutPins = { projection: { pins: 0 } } as const;

/** A file as it is first written. */
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
