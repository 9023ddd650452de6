// Makes folders for files that a process may lose. They are gone when it ends, or empty when it starts again.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePrivateFolder, privateFolderMode } from "#kit/base/private-files.ts";
import type { Config } from "./config.ts";
import { openDataDir } from "./data-dir.ts";

/** Makes an empty folder of that name, for this process alone, with files that may be lost. */
export type Scratch = (name: string) => string;

/** Their parent folder is made at the first use, and removed when `stack` ends. */
export function createScratch(config: Config, stack: AsyncDisposableStack): Scratch {
  let root: string | undefined;
  return (name) => {
    root ??= openRoot(config, stack);
    const folder = join(root, name);
    mkdirSync(folder, { mode: privateFolderMode });
    return folder;
  };
}

function openRoot(config: Config, stack: AsyncDisposableStack): string {
  const { role, dataDir, scratchDir } = config;
  // Role `all` holds its data directory already.
  if (role === "all") return emptyFolder(join(dataDir, "temp"));
  if (scratchDir !== undefined) {
    return emptyFolder(join(stack.use(openDataDir(join(scratchDir, role))).path, "temp"));
  }
  const made = mkdtempSync(join(tmpdir(), `genmesh-${role}-`));
  stack.defer(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Files that a dead process left there are of no use to a later one. */
function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  makePrivateFolder(path);
  return path;
}
