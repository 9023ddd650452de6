import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { FoundFault } from "#kit/base/valid-parts.ts";
import type { Workshop } from "#kit/threads/workshop.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type CatalogEvents, createCatalogEvents } from "./events.ts";
import { type Fault, faultText, pathText } from "./faults.ts";
import {
  type CatalogRead,
  type FileWatch,
  readCatalogFile,
  type WorkflowFiles,
  watchFile,
} from "./file.ts";
import { type CatalogVerdict, parseCatalog } from "./parse.ts";

/** The parts that the catalog service needs. */
export interface CatalogContext {
  /** Path of the catalog file. */
  file: string;
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

/** The snapshot in force, and a signal at the next one. */
export interface SnapshotSource {
  /** Refuses with SERVICE_UNAVAILABLE before the file was read. */
  current(): Snapshot;
  loaded(): boolean;
  /** The text of the snapshot in force. Refuses as `current` does. */
  inForce(): CatalogText;
  /** The workflow files beside the file, by the last read. */
  workflows(): WorkflowFiles;
  /** Calls `listener` after each change of the snapshot, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** Reads the file for the first time. Rejects where it cannot be served, and lists every fault. */
  load(): Promise<FileWatch>;
}

/** Makes the source of a catalog file. It keeps the last good snapshot when the file becomes faulty or disappears. */
export function createSnapshotSource(context: CatalogContext): SnapshotSource {
  const events = createCatalogEvents(context);
  const listeners = new Set<() => void>();
  let inForce: Snapshot | undefined;
  let text: CatalogText | undefined;
  let workflows: WorkflowFiles = new Map();
  const put = (snapshot: Snapshot | undefined, read: CatalogRead) => {
    inForce = snapshot;
    if (read.text !== undefined) text = { text: read.text, workflows };
  };
  const changed = (read: CatalogRead) => {
    workflows = read.workflows ?? workflows;
    const next = judge(read, inForce, events, context.clock.now());
    if (next === inForce) return;
    put(next, read);
    for (const listener of [...listeners]) listener();
  };
  return {
    current: () => inForce ?? refuse(ErrorReason.SERVICE_UNAVAILABLE),
    inForce: () => text ?? refuse(ErrorReason.SERVICE_UNAVAILABLE),
    loaded: () => inForce !== undefined,
    workflows: () => workflows,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async load() {
      const known = await readCatalogFile(context.file);
      const { snapshot, faults } = verdictOf(known, context.clock.now());
      if (faults) throw new Error(refusalText(context.file, faults));
      workflows = known.workflows ?? workflows;
      put(snapshot, known);
      events.loaded(snapshot);
      return watchFile({ path: context.file, clock: context.clock, known, changed });
    },
  };
}

/** The snapshot that is in force after `read`. */
function judge(
  read: CatalogRead,
  inForce: Snapshot | undefined,
  events: CatalogEvents,
  nowMs: number,
): Snapshot | undefined {
  const { snapshot, faults } = verdictOf(read, nowMs);
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

function verdictOf(read: CatalogRead, nowMs: number): CatalogVerdict {
  if (read.fault === undefined) return parseCatalog(read.text, read.workflows, nowMs);
  return { faults: [{ path: "", message: read.fault }] };
}

function refusalText(file: string, faults: readonly Fault[]): string {
  return [`The catalog ${file} cannot be served:`, ...faults.map((f) => `  ${faultText(f)}`)].join(
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
