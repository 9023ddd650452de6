// Checks whether disks can still be written to. `store-watch.ts` runs the checks.

import { statSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { privateFileMode } from "#kit/base/private-files.ts";
import type { StoreCheck } from "./store-watch.ts";

/** Bytes that a disk must have room for. With less room, large files cannot be stored, and soon no file at all. */
const trialBytes = Buffer.alloc(1024 * 1024);
/** In the folder itself, so that a quota, a read-only mount and the lack of inodes are noticed too. */
const trialName = ".genmesh-room";

/**
 * Checks whether the disks that hold `folders` take writes. It writes, because only that shows it. A disk that holds several of them is
 * one check, so that it is one line in the log.
 */
export function diskChecks(folders: readonly string[]): StoreCheck[] {
  const byDisk = new Map<number, string>();
  for (const folder of folders) {
    const { dev } = statSync(folder);
    if (!byDisk.has(dev)) byDisk.set(dev, folder);
  }
  return [...byDisk.values()].map((folder, index) => ({
    store: index === 0 ? "disk" : `disk-${index + 1}`,
    isNeeded: true,
    ask: () => tryToWrite(folder),
  }));
}

async function tryToWrite(folder: string): Promise<void> {
  const trial = join(folder, trialName);
  try {
    await writeFile(trial, trialBytes, { mode: privateFileMode });
  } finally {
    await rm(trial, { force: true });
  }
}
