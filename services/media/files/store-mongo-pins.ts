// Notes in MongoDB which jobs use a file, so that its bytes stay while a job needs them.

import type { Collection } from "mongodb";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { AccountFile } from "./file.ts";
import { fullPinsRetryMs, maxPinsPerFile } from "./limits.ts";
import type { JobPin } from "./store.ts";
import { type FileDocument, fileOf, type PinDocument, withoutPins } from "./store-mongo-docs.ts";

/** A file that a job uses, with its pin. */
interface Use {
  file: FileDocument;
  pin: PinDocument;
}

/**
 * Pins are in the document of their file. So one write sees the file `ready` and keeps its bytes from then on. Only after that a job's
 * former file under the same index is unpinned.
 */
export async function pinFile(
  files: Collection<FileDocument>,
  accountId: string,
  fileId: string,
  { jobId, index }: JobPin,
): Promise<AccountFile | undefined> {
  const uses = (await usesOf(files, jobId)).filter(({ pin }) => pin.index === index);
  const last = uses.at(-1);
  if (last?.file._id === fileId) {
    const isHad = last.file.state === "ready" || last.file.state === "deleted";
    return isHad && last.file.accountId === accountId ? fileOf(last.file) : undefined;
  }
  const n = last ? last.pin.n + 1 : 0;
  const ready = { _id: fileId, accountId, state: "ready" } as const;
  const file = await files.findOneAndUpdate(
    { ...ready, [`pins.${maxPinsPerFile - 1}`]: { $exists: false } },
    { $addToSet: { pins: { jobId, index, n } } },
    { returnDocument: "after", ...withoutPins },
  );
  if (!file) {
    const isFull = (await files.findOne(ready, { projection: { _id: 1 } })) !== null;
    if (isFull) refuseFull();
    return undefined;
  }
  // A pin that another process sets at the same time has the same number. It may stay until the job unpins all files.
  if (last) {
    await files.updateMany(
      { "pins.jobId": jobId },
      { $pull: { pins: { jobId: { $eq: jobId }, index: { $eq: index }, n: { $lt: n } } } },
    );
  }
  return fileOf(file);
}

/** The files that a job uses, by index. */
export async function pinnedBy(
  files: Collection<FileDocument>,
  jobId: string,
): Promise<Map<number, AccountFile>> {
  const inForce = new Map<number, Use>();
  for (const use of await usesOf(files, jobId)) inForce.set(use.pin.index, use);
  const had = [...inForce].filter(([, { file }]) => /^(ready|deleted)$/.test(file.state));
  return new Map(had.map(([index, { file }]) => [index, fileOf(file)]));
}

/**
 * Removes all pins of a job. Files only move forward, from `ready` to `deleted`. With this order, a file that is deleted meanwhile has
 * lost its pin before, or becomes due.
 */
export async function unpinAll(
  files: Collection<FileDocument>,
  jobId: string,
  now: number,
): Promise<void> {
  const ofJob = { "pins.jobId": jobId };
  const withoutPin = { $pull: { pins: { jobId } } };
  await files.updateMany({ ...ofJob, state: { $ne: "deleted" } }, withoutPin);
  await files.updateMany({ ...ofJob, state: "deleted" }, { ...withoutPin, $set: { dueAt: now } });
}

/** All uses of a job. Of those with the same index, the one in force comes last. */
async function usesOf(files: Collection<FileDocument>, jobId: string): Promise<Use[]> {
  const docs = await files.find({ "pins.jobId": jobId }).toArray();
  return docs
    .flatMap((file) => file.pins.filter((pin) => pin.jobId === jobId).map((pin) => ({ file, pin })))
    .sort((a, b) => a.pin.n - b.pin.n || (a.file._id < b.file._id ? -1 : 1));
}

function refuseFull(): never {
  refuse(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: String(fullPinsRetryMs) },
  });
}
