// Stores a verified image in the order that survives a crash: record, quota, bytes, visible. Uploads and imports both call it.

import { withinTime } from "#kit/base/abort.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { clearFile } from "./clear.ts";
import type { StorageContext } from "./context.ts";
import { type AccountFile, blobKeyOf } from "./file.ts";
import {
  busyRetryMs,
  storeLeaseMs,
  storeTimeoutMs,
  waitElsewhereMs,
  waitPollMs,
} from "./limits.ts";
import { quotaBytesOf } from "./quota.ts";
import type { Begun, NewFile } from "./store.ts";

/** A verified image that is to be stored. */
export type Draft = Omit<NewFile, "storageId" | "createdAt" | "leaseUntil">;

/** The result of saving it. */
export type Saved =
  | { kind: "saved"; file: AccountFile }
  /** Another file is in its place, perhaps still `storing`: see {@link FileStore.begin}. */
  | Extract<Begun, { kind: "taken" }>;

/** Stores verified images of accounts. */
export interface Saver {
  /**
   * Writes the file down, takes quota for its bytes, stores them, counts them, and shows the file. This order lets a sweeper find and
   * undo all that a crash leaves. So used bytes are those of files that are or will be visible. Refuses with UPLOAD_QUOTA_EXCEEDED at
   * `param`, and then nothing is left.
   */
  save(draft: Draft, open: () => AsyncIterable<Uint8Array>, param: string): Promise<Saved>;
  /** Waits while a file is `storing`. Undefined where storing it failed, or where it is deleted. */
  settled(file: AccountFile, signal: AbortSignal): Promise<AccountFile | undefined>;
  /** Resolves when all work under way has ended. */
  idle(): Promise<void>;
}

/** Makes a saver. */
export function createSaver(context: StorageContext): Saver {
  const { clock, ids, store, events } = context;
  const running = new Map<string, Promise<unknown>>();

  const save: Saver["save"] = async (draft, open, param) => {
    const now = clock.now();
    const file: NewFile = {
      ...draft,
      storageId: ids.make("stored"),
      createdAt: now,
      leaseUntil: now + storeLeaseMs,
    };
    // Known from the first moment, so that a duplicate that finds the record can wait for this.
    const ended = Promise.withResolvers<void>();
    running.set(file.storageId, ended.promise);
    try {
      const begun = await store.begin(file);
      if (begun.kind === "taken") {
        events.reused(draft.origin);
        return begun;
      }
      const ready: AccountFile = { ...file, state: "ready" };
      await storeOrDrop(ready, open, param, context);
      events.stored(ready);
      return { kind: "saved", file: ready };
    } finally {
      running.delete(file.storageId);
      ended.resolve();
    }
  };

  return {
    save,
    async settled(file, signal) {
      const until = clock.steady() + waitElsewhereMs;
      let now: AccountFile | undefined = file;
      // An attempt of this process may have ended since `file` was read. Only a second look shows that it is another process's.
      let isElsewhere = false;
      while (now?.storageId === file.storageId && now.state === "storing") {
        if (clock.steady() > until) refuse(ErrorReason.SERVICE_UNAVAILABLE, retryHint);
        const here = running.get(file.storageId);
        await (isElsewhere ? clock.sleep(waitPollMs, signal) : here);
        signal.throwIfAborted();
        now = await store.find(file.accountId, file.fileId);
        isElsewhere = !here;
      }
      return now?.state === "ready" ? now : undefined;
    },
    async idle() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}

const retryHint = { metadata: { retry_after_ms: String(busyRetryMs) } };

async function storeOrDrop(
  file: AccountFile,
  open: () => AsyncIterable<Uint8Array>,
  param: string,
  context: StorageContext,
): Promise<void> {
  const { clock, store, quota, events } = context;
  const charge = { accountId: file.accountId, chargeId: file.storageId };
  try {
    const room = await quota.reserve(charge, quotaBytesOf(file), context.quotaBytes);
    if (room === "full") refuse(ErrorReason.UPLOAD_QUOTA_EXCEEDED, { param });
    if (room === "reserved") await putInTime(file, open(), context);
    const isOurs = room === "reserved" && (await quota.commit(charge));
    // Too slow: another process has given this attempt up.
    if (!isOurs || !(await store.publish(file))) refuse(ErrorReason.SERVICE_UNAVAILABLE, retryHint);
  } catch (error) {
    try {
      if (await store.drop(file, clock.now())) {
        events.dropped(file, false);
        await clearFile(file, context);
      } else await deleteIfCleared(file, context);
    } catch (trouble) {
      events.trouble("a file that was not stored is left to the sweeper", file.fileId, trouble);
    }
    throw error;
  }
}

async function putInTime(
  file: AccountFile,
  source: AsyncIterable<Uint8Array>,
  { clock, blobs }: StorageContext,
): Promise<void> {
  const late = () => new Error("the blob store took too long");
  const stored = await withinTime({ clock, ms: storeTimeoutMs, late }, (signal) =>
    blobs.put(blobKeyOf(file), source, signal),
  );
  if (stored.sizeBytes !== file.sizeBytes || stored.sha256 !== file.sha256) {
    throw new Error("the stored bytes are not the verified ones");
  }
}

/** Deletes the bytes of an attempt that another process gave up and cleared away, and that were stored after that. */
async function deleteIfCleared(file: AccountFile, { store, blobs }: StorageContext): Promise<void> {
  const now = await store.find(file.accountId, file.fileId);
  const isCleared = !now || now.storageId !== file.storageId || now.state === "gone";
  if (isCleared) await blobs.delete(blobKeyOf(file));
}
