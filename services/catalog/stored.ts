// Reads the catalog where the store has versions that operators put in force, in place of the file.

import type { CatalogRead, CatalogReader } from "./file.ts";
import { fileNumber, type VersionStore } from "./version.ts";

/**
 * Reads the newest version in the store, and the file where there is none. Texts of a version are read once, because they never change.
 * Where the store is away, the last read stands. Rejects with SERVICE_UNAVAILABLE where it is away at the first read.
 */
export function storedReader(
  versions: Pick<VersionStore, "newest" | "find">,
  file: CatalogReader,
): CatalogReader {
  let last: CatalogRead | undefined;
  const read = async (): Promise<CatalogRead> => {
    const { number = fileNumber } = (await versions.newest()) ?? {};
    if (number === fileNumber) return await file();
    return number === last?.number ? last : await versionRead(versions, number);
  };
  return async () => {
    try {
      last = await read();
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
}

async function versionRead(
  versions: Pick<VersionStore, "find">,
  number: number,
): Promise<CatalogRead> {
  const version = await versions.find(number);
  if (version === undefined) return { fault: `version ${number} is not in the store` };
  const { text, workflows } = version;
  return { text, workflows, number };
}
