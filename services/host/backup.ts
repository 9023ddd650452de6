// Copies the state of an install in one process, and brings it back. `cli/backup.ts` has the commands for it.

import { existsSync, readdirSync } from "node:fs";
import { copyFile, mkdtemp, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { closeToOthers, makePrivateFolder } from "#kit/base/private-files.ts";
import { syncPath } from "#kit/base/sync-path.ts";
import { type CopiedBlobs, copyFolderBlobs } from "#kit/store/blobs/folder-copy.ts";
import { copySqlite } from "#kit/store/sqlite-copy.ts";
import type { StoresConfig } from "./config-stores.ts";
import { keptFiles, openDataDir } from "./data-dir.ts";
import { ConfigError } from "./env.ts";

/** The places of a one-process install's state. */
export interface OwnState {
  dataDir: string;
  /** The database's file, wherever it lies. */
  database: string;
  /** The folder of the blobs, wherever it lies. Undefined: they are in an S3 store. */
  blobs: string | undefined;
}

/** The parts of a backup. */
export interface Backup {
  /** Its absolute path. */
  folder: string;
  databaseBytes: number;
  /** Undefined: the files are in an S3 store, which has backups of its own. */
  files: CopiedBlobs | undefined;
}

/** Names in a backup. They are those of a data directory, whose default stores lie in it. */
const databaseName = "genmesh.sqlite";
const blobsName = "blobs";

/** The state that a configuration names. Throws ConfigError where the database is one of a server. */
export function ownState(dataDir: string, { database, blobs }: StoresConfig): OwnState {
  if (database?.kind !== "sqlite") {
    throw new ConfigError(
      "GENMESH_DATABASE_URL names a MongoDB: back it up with its own tools, as docs/operations.md says",
    );
  }
  return {
    dataDir,
    database: database.file,
    blobs: blobs?.kind === "file" ? blobs.folder : undefined,
  };
}

/**
 * Writes a backup into a new folder, which appears whole or not at all. The service may run meanwhile. The database comes first, because
 * a blob is stored before a record names it: the copy lacks only blobs that were deleted since.
 */
export async function backUp(state: OwnState, folder: string): Promise<Backup> {
  const { dataDir, database, blobs } = state;
  if (!existsSync(database)) {
    throw new ConfigError(
      `there is no database ${database}: set GENMESH_DATA_DIR and GENMESH_DATABASE_URL as the service has them`,
    );
  }
  if (blobs !== undefined && !existsSync(blobs)) {
    throw new ConfigError(
      `there is no folder ${blobs}: set GENMESH_BLOBS_URL as the service has it`,
    );
  }
  const target = await newFolder(folder, state);
  const draft = await mkdtemp(`${target}.unfinished-`);
  try {
    const copy = join(draft, databaseName);
    await copySqlite(database, copy);
    await copyKeptFiles(dataDir, draft);
    const files = blobs && (await copyFolderBlobs(blobs, join(draft, blobsName)));
    const { size: databaseBytes } = await stat(copy);
    await syncPath(draft);
    await rename(draft, target);
    await syncPath(dirname(target));
    return { folder: target, databaseBytes, files: files || undefined };
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

/** The real path of a folder that can be made. Throws ConfigError where there is something, or where it would be copied itself. */
async function newFolder(folder: string, { dataDir, blobs }: OwnState): Promise<string> {
  const parent = dirname(resolve(folder));
  // A missing one may be a disk that is not mounted.
  if (!existsSync(parent)) throw new ConfigError(`there is no folder ${parent}`);
  const path = join(await realpath(parent), basename(resolve(folder)));
  if (existsSync(path))
    throw new ConfigError(`${path} is there already: a backup makes its folder`);
  for (const own of [dataDir, ...(blobs === undefined ? [] : [blobs])]) {
    if (existsSync(own) && isWithin(path, await realpath(own))) {
      throw new ConfigError(`${path} lies in ${own}: a backup lies outside what it copies`);
    }
  }
  return path;
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith("../");
}

async function copyKeptFiles(from: string, to: string): Promise<void> {
  for (const name of keptFiles) {
    if (!existsSync(join(from, name))) continue;
    const copy = join(to, name);
    await copyFile(join(from, name), copy);
    closeToOthers(copy);
    await syncPath(copy);
  }
}

/**
 * Brings a backup back into places that have no state yet. Throws ConfigError, and changes nothing, where they have some, where a process
 * uses the data directory, or where the folder is no backup. Where it breaks off later, no process starts on what there is.
 */
export async function restore(folder: string, state: OwnState): Promise<Backup> {
  const { dataDir, database, blobs } = state;
  const from = resolve(folder);
  checkBackup(from, state);
  using dir = openDataDir(dataDir);
  // A log that was left behind would be taken for the restored database's.
  const taken = [database, `${database}-wal`].find((file) => existsSync(file));
  const used = dir.isNew() ? (taken ?? (isEmpty(blobs) ? undefined : blobs)) : dataDir;
  if (used !== undefined) {
    throw new ConfigError(`${used} has a state already: move it away, and restore again`);
  }
  let files: CopiedBlobs | undefined;
  await dir.fill(async () => {
    makePrivateFolder(dirname(database));
    await copySqlite(join(from, databaseName), database);
    await copyKeptFiles(from, dataDir);
    if (blobs !== undefined) files = await copyFolderBlobs(join(from, blobsName), blobs);
    await syncPath(dirname(database));
    await syncPath(dataDir);
  });
  return { folder: from, databaseBytes: (await stat(database)).size, files };
}

/** Throws ConfigError where the folder is no backup of an install with such stores. */
function checkBackup(folder: string, { blobs }: OwnState): void {
  if (!existsSync(join(folder, databaseName))) {
    throw new ConfigError(`${folder} is no backup: it has no ${databaseName}`);
  }
  const hasFiles = existsSync(join(folder, blobsName));
  if (hasFiles && blobs === undefined) {
    throw new ConfigError("the backup has files, and GENMESH_BLOBS_URL names an S3 store");
  }
  if (!hasFiles && blobs !== undefined) {
    throw new ConfigError(
      "the backup has no files, which were in an S3 store: set GENMESH_BLOBS_URL as the service had it",
    );
  }
}

function isEmpty(folder: string | undefined): boolean {
  return folder === undefined || !existsSync(folder) || readdirSync(folder).length === 0;
}
