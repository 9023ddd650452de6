// Copies a SQLite database for a backup, while processes use it.

import { backup, DatabaseSync } from "node:sqlite";
import { openPrivately } from "#kit/base/private-files.ts";
import { syncPath } from "#kit/base/sync-path.ts";

/** Milliseconds that a copy waits for a process that has the database to itself, as one has while it opens it. */
const busyTimeoutMs = 5_000;
/** All pages in one step. A copy in several steps begins again whenever another process writes between two of them. */
const allPages = 0x7fffffff;

/**
 * Copies a database, as it is at one moment, into a new file for this user alone. Processes may use it meanwhile, and are not kept
 * waiting. The copy is checked page by page, lies in one file, and survives a loss of power when this resolves. Rejects where the source
 * is damaged or no database.
 */
export async function copySqlite(from: string, to: string): Promise<void> {
  openPrivately(to);
  try {
    using source = new DatabaseSync(from, { readOnly: true, timeout: busyTimeoutMs });
    await backup(source, to, { rate: allPages });
    using copy = new DatabaseSync(to);
    // A copy of a database with a write-ahead log would get one of its own.
    copy.exec("PRAGMA journal_mode=DELETE");
    const [found] = copy.prepare("PRAGMA quick_check(1)").all();
    if (found?.quick_check !== "ok") throw new Error(`it is damaged: ${found?.quick_check}`);
  } catch (error) {
    throw new Error(`${from} cannot be copied: ${(error as Error).message}`, { cause: error });
  }
  await syncPath(to);
}
