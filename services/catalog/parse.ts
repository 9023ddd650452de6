// Judges the text of a catalog from end to end: YAML, schema, rules, size. The result is a snapshot, or all its faults. The
// service, drafts and `genmesh catalog check` all call it.

import {
  type FaultPath,
  type FoundFault,
  validPartsOf,
  whereValid,
} from "#kit/base/valid-parts.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { explainIssue, type Fault, faultsOf, pathText } from "./faults.ts";
import type { WorkflowFiles } from "./file.ts";
import { maxFaults, maxFileBytes, maxSnapshotBytes } from "./limits.ts";
import { crossFaults } from "./rules.ts";
import { catalogSchema } from "./schema.ts";
import { snapshotBytes, snapshotOf } from "./snapshot.ts";
import { readYaml } from "./yaml.ts";

/** A file's snapshot, or all its faults (at least one). */
export type CatalogVerdict =
  | { snapshot: Snapshot; faults?: never }
  | { snapshot?: never; faults: Fault[] };

/**
 * Judges the text of a catalog file, with the workflow files that it names. Never throws. The same texts always give the same verdict at
 * the same time. `nowMs`: milliseconds since the epoch. Default: a certificate may be of any time.
 */
export function parseCatalog(
  text: string,
  workflows: WorkflowFiles = new Map(),
  nowMs?: number,
): CatalogVerdict {
  if (Buffer.byteLength(text) > maxFileBytes) return refused([], tooLarge);
  const { value, faults, positionOf } = readYaml(text);
  if (faults.length > 0) return refused(faults);
  const parsed = catalogSchema.safeParse(value, { error: explainIssue });
  if (!parsed.success) {
    const own = faultsOf(parsed.error);
    const crossed = whereValid(() =>
      crossFaults(validPartsOf(catalogSchema, value), workflows, nowMs),
    );
    return refused(withPositions([...own, ...crossed.filter(isElsewhere(own))], positionOf));
  }
  const crossed = crossFaults(parsed.data, workflows, nowMs);
  if (crossed.length > 0) return refused(withPositions(crossed, positionOf));
  const snapshot = snapshotOf(parsed.data, workflows);
  return snapshotBytes(snapshot) > maxSnapshotBytes ? refused([], unfolded) : { snapshot };
}

/** One fault a place is enough. */
function isElsewhere(own: readonly FoundFault[]): (fault: FoundFault) => boolean {
  const places = new Set(own.map(({ path }) => pathText(path)));
  return ({ path }) => !places.has(pathText(path));
}

const tooLarge = `the file has more than ${maxFileBytes} bytes`;
const unfolded = `the catalog has more than ${maxSnapshotBytes} bytes with its aliases unfolded`;

function refused(found: readonly FoundFault[], whole?: string): CatalogVerdict {
  const shown: Fault[] = found
    .slice(0, maxFaults)
    .map(({ path, message }) => ({ path: pathText(path), message }));
  if (found.length > maxFaults) {
    shown.push({ path: "", message: `${found.length - maxFaults} more faults are not shown` });
  }
  return { faults: whole === undefined ? shown : [{ path: "", message: whole }, ...shown] };
}

function withPositions(
  faults: readonly FoundFault[],
  positionOf: (path: FaultPath) => string | undefined,
): FoundFault[] {
  return faults.map(({ path, message }) => {
    const position = path.length > 0 ? positionOf(path) : undefined;
    return { path, message: position === undefined ? message : `${message} (${position})` };
  });
}
