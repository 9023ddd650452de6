// Makes a file or folder outlast a loss of power. Stores in folders and copies call it after they write.

import { open } from "node:fs/promises";

/** Waits until a file's bytes, or a folder's entries, survive a loss of power. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}
