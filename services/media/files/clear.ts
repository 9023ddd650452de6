// Frees the quota and the bytes of a file that was deleted or given up. Deleting, failed uploads and the sweeper call it.

import type { StorageContext } from "./context.ts";
import { type AccountFile, blobKeyOf } from "./file.ts";
import { goneKeptMs, pinCheckMs } from "./limits.ts";

/**
 * Clears a `deleted` file away. It frees the file's quota, then, where no job uses them, its bytes, and with them its room on disk. May
 * be repeated, by any process, after any of its steps.
 */
export async function clearFile(file: AccountFile, context: StorageContext): Promise<void> {
  const { clock, store, quota, blobs, events } = context;
  const charge = { accountId: file.accountId, chargeId: file.storageId };
  await quota.keep(charge, clock.now());
  if ((await store.pinsOf(file.fileId)).length > 0) {
    await store.defer(file, clock.now() + pinCheckMs);
    // The last job may have unpinned it in between, which would not be noticed for long.
    if ((await store.pinsOf(file.fileId)).length > 0) return;
  }
  await blobs.delete(blobKeyOf(file));
  await quota.release(charge, clock.now());
  await store.erase(file, clock.now() + goneKeptMs);
  events.erased(file);
}
