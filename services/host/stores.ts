import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { openFolderBlobs } from "#kit/blobs/folder.ts";
import type { BlobStore } from "#kit/blobs.ts";
import type { Database } from "#kit/database.ts";
import { openSqlite } from "#kit/sqlite.ts";
import { ConfigError } from "./env.ts";
import type { HostContext } from "./mesh.ts";

/** Where a process keeps what must survive it. */
export interface Stores {
  database: Database;
  blobs: BlobStore;
}

/** Opens the stores that the configuration names; `stack` closes them. Throws ConfigError where one cannot be had. */
export async function openStores(
  context: HostContext,
  stack: AsyncDisposableStack,
): Promise<Stores> {
  const { file } = context.config.database;
  const sqlite = await named("GENMESH_DATABASE_URL", "a database file", file, () => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return stack.use(openSqlite(file));
  });
  const { folder } = context.config.blobs;
  const blobs = await named("GENMESH_BLOBS_URL", "a folder", folder, () =>
    openFolderBlobs({ ...context, folder }),
  );
  return { database: { kind: "sqlite", sqlite }, blobs };
}

/** Faults of opening a store name the variable that chose it. */
async function named<T>(
  variable: string,
  what: string,
  path: string,
  open: () => T | Promise<T>,
): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new ConfigError(
      `${variable} must name ${what} that can be written; ${path} cannot: ${(error as Error).message}`,
    );
  }
}
