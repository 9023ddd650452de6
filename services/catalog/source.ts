import { ErrorReason, refuse } from "#kit/errors.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { CatalogContext } from "./context.ts";
import { type CatalogEvents, createCatalogEvents } from "./events.ts";
import { type Fault, faultText } from "./faults.ts";
import { type CatalogVerdict, parseCatalog } from "./parse.ts";
import { type FileRead, readCatalogFile } from "./read-file.ts";
import { type FileWatch, watchFile } from "./watch-file.ts";

/** The snapshot in force, and news of the next one. */
export interface SnapshotSource {
  /** Refuses with SERVICE_UNAVAILABLE before the file was read. */
  current(): Snapshot;
  loaded(): boolean;
  /** Calls `listener` after each change of the snapshot, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** Reads the file for the first time. Rejects, listing every fault, where it cannot be served. */
  load(): Promise<FileWatch>;
}

/** Makes the source of a catalog file: it keeps the last good snapshot whatever becomes of the file. */
export function createSnapshotSource(context: CatalogContext): SnapshotSource {
  const events = createCatalogEvents(context);
  const listeners = new Set<() => void>();
  let inForce: Snapshot | undefined;
  const changed = (read: FileRead) => {
    const next = judge(read, inForce, events);
    if (next === inForce) return;
    inForce = next;
    for (const listener of [...listeners]) listener();
  };
  return {
    current: () => inForce ?? refuse(ErrorReason.SERVICE_UNAVAILABLE),
    loaded: () => inForce !== undefined,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async load() {
      const known = await readCatalogFile(context.file);
      const { snapshot, faults } = verdictOf(known);
      if (faults) throw new Error(refusalText(context.file, faults));
      inForce = snapshot;
      events.loaded(snapshot);
      return watchFile({ path: context.file, clock: context.clock, known, changed });
    },
  };
}

/** The snapshot that is in force after `read`. */
function judge(
  read: FileRead,
  inForce: Snapshot | undefined,
  events: CatalogEvents,
): Snapshot | undefined {
  const { snapshot, faults } = verdictOf(read);
  if (faults) {
    events.refused(faults);
    return inForce;
  }
  if (inForce && snapshot.version === inForce.version) {
    events.unchanged(inForce);
    return inForce;
  }
  events.loaded(snapshot);
  return snapshot;
}

function verdictOf(read: FileRead): CatalogVerdict {
  if (read.fault === undefined) return parseCatalog(read.text);
  return { faults: [{ path: "", message: read.fault }] };
}

function refusalText(file: string, faults: readonly Fault[]): string {
  return [`The catalog ${file} cannot be served:`, ...faults.map((f) => `  ${faultText(f)}`)].join(
    "\n",
  );
}
