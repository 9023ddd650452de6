import type { Fault } from "./faults.ts";
import { parseCatalog } from "./parse.ts";
import { readCatalogFile } from "./read-file.ts";

/** What `genmesh catalog check` says of a file. */
export interface CatalogCheck {
  /** Empty: the file can be served. */
  faults: Fault[];
  /** Number of models; 0 where there are faults. */
  models: number;
  /** Version that its snapshot would have; absent where there are faults. */
  version?: string;
}

/** Validates a catalog file without a server. Never rejects: a file that cannot be read is a fault as well. */
export async function checkCatalogFile(path: string): Promise<CatalogCheck> {
  const read = await readCatalogFile(path);
  if (read.fault !== undefined) {
    return { faults: [{ path: "", message: read.fault }], models: 0 };
  }
  const { snapshot, faults } = parseCatalog(read.text);
  if (faults) return { faults, models: 0 };
  return { faults: [], models: snapshot.models.length, version: snapshot.version };
}
