// Holds the snapshot in force: takes each new content of the catalog, keeps the last good one, and tells those who watch.
// `file.ts` and `stored.ts` read the content.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Seal } from "#kit/base/seal.ts";
import type { FoundFault } from "#kit/base/valid-parts.ts";
import type { Database } from "#kit/store/database.ts";
import type { Workshop } from "#kit/threads/workshop.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type CatalogEvents, createCatalogEvents } from "./events.ts";
import { type Fault, faultText, pathText } from "./faults.ts";
import {
  type CatalogRead,
  type CatalogReader,
  type CatalogWatch,
  readCatalogFile,
  type WorkflowFiles,
  watchCatalog,
} from "./file.ts";
import { type CatalogVerdict, parseCatalog } from "./parse.ts";
import { storedKeyFaults } from "./stored-key.ts";

/** The parts that the catalog service needs. */
export interface CatalogContext {
  /** Path of the catalog file. */
  file: string;
  /** The store of versions, which operators make. The file is in force until the first one. Absent: the file is the master. */
  database?: Database | undefined;
  /** Seals stored keys of upstreams. Absent: none can be set. */
  seal?: Seal | undefined;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Threads that judge drafts. */
  workshop: Workshop;
}

/** A catalog as text. */
export interface CatalogText {
  text: string;
  /** The workflow files that it names. */
  workflows: WorkflowFiles;
}

/** The text in force. */
export interface TextInForce extends CatalogText {
  /** Of its version in the store. Undefined: it is the file's. */
  number: number | undefined;
}

/** The snapshot in force, and a signal at the next one. */
export interface SnapshotSource {
  /** Refuses with SERVICE_UNAVAILABLE before the file was read. */
  current(): Snapshot;
  loaded(): boolean;
  /** Is the catalog as it stands broken, so that an earlier one is in force? */
  isRefused(): boolean;
  /** The text of the snapshot in force. Refuses as `current` does. */
  inForce(): TextInForce;
  /** Calls `listener` after each change of the snapshot, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** Reads the catalog for the first time. Rejects where it cannot be served, and lists every fault. */
  load(): Promise<CatalogWatch>;
}

/** The parts of a source. */
type SourceContext = Pick<CatalogContext, "file" | "clock" | "log" | "metrics"> & {
  read: CatalogReader;
  /** Are versions in the store the master? */
  isStored: boolean;
};

/** Makes the source of a catalog. It keeps the last good snapshot when the catalog becomes faulty or disappears. */
export function createSnapshotSource(context: SourceContext): SnapshotSource {
  const { read, clock, isStored } = context;
  const events = createCatalogEvents(context);
  const listeners = new Set<() => void>();
  let inForce: Snapshot | undefined;
  let text: TextInForce | undefined;
  let isRefused = false;
  const put = (
    snapshot: Snapshot,
    { text: is = "", workflows = new Map(), number }: CatalogRead,
  ) => {
    inForce = snapshot;
    text = { text: is, workflows, number };
  };
  const changed = (found: CatalogRead) => {
    const before = inForce;
    const next = judge(verdictOf(found, isStored), before, events);
    isRefused = next === undefined;
    if (!next) return;
    put(next, found);
    if (next !== before) for (const listener of [...listeners]) listener();
  };
  return {
    current: () => inForce ?? refuse(ErrorReason.SERVICE_UNAVAILABLE),
    inForce: () => text ?? refuse(ErrorReason.SERVICE_UNAVAILABLE),
    loaded: () => inForce !== undefined,
    isRefused: () => isRefused,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async load() {
      const known = await read();
      const { snapshot, faults } = verdictOf(known, isStored);
      if (faults) throw new Error(refusalText(placeOf(context.file, known), faults));
      put(snapshot, known);
      events.loaded(snapshot);
      return watchCatalog({ read, clock, known, changed });
    },
  };
}

/** The snapshot of a verdict: the one in force where its content is the same. Undefined: it has faults, and what is in force stays. */
function judge(
  { snapshot, faults }: CatalogVerdict,
  inForce: Snapshot | undefined,
  events: CatalogEvents,
): Snapshot | undefined {
  if (faults) {
    events.refused(faults);
    return undefined;
  }
  if (inForce && snapshot.version === inForce.version) {
    events.unchanged(inForce);
    return inForce;
  }
  events.loaded(snapshot);
  return snapshot;
}

/** A certificate may be of any time here. One that ends keeps no replica from starting: files are stored unsigned then. */
function verdictOf(read: CatalogRead, isStored: boolean): CatalogVerdict {
  if (read.fault !== undefined) return { faults: [{ path: "", message: read.fault }] };
  const verdict = parseCatalog(read.text, read.workflows);
  // A key may be stored after the text that names it. Where none can be, the text is at fault.
  const keyless = verdict.snapshot && !isStored ? storedKeyFaults(verdict.snapshot, undefined) : [];
  return keyless.length > 0 ? { faults: keyless } : verdict;
}

function placeOf(file: string, { number }: CatalogRead): string {
  return number === undefined ? file : `of version ${number} in the store`;
}

function refusalText(place: string, faults: readonly Fault[]): string {
  return [`The catalog ${place} cannot be served:`, ...faults.map((f) => `  ${faultText(f)}`)].join(
    "\n",
  );
}

/** The verdict of `genmesh catalog check` on a file. */
export interface CatalogCheck {
  /** Empty: the file can be served. */
  faults: Fault[];
  /** Number of models. 0 where there are faults. */
  models: number;
  /** Version that its snapshot would have. Absent where there are faults. */
  version?: string;
}

/**
 * Validates a catalog file without a server. `ask` may find further faults in a snapshot that has none. A file that cannot be read is a
 * fault as well. Rejects only with an error of `ask`.
 */
export async function checkCatalogFile(
  path: string,
  ask: (snapshot: Snapshot) => Promise<readonly FoundFault[]> = async () => [],
): Promise<CatalogCheck> {
  const read = await readCatalogFile(path);
  if (read.fault !== undefined) {
    return { faults: [{ path: "", message: read.fault }], models: 0 };
  }
  const { snapshot, faults } = parseCatalog(read.text, read.workflows, systemClock.now());
  if (faults) return { faults, models: 0 };
  const { version, models } = snapshot;
  const found = (await ask(snapshot)).map((fault) => ({ ...fault, path: pathText(fault.path) }));
  return { faults: found, models: models.length, version };
}
