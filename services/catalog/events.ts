// Logs and counts each content of the catalog that came into force or was refused.

import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Fault, faultText } from "./faults.ts";
import type { CatalogContext } from "./source.ts";

/** Events of a catalog, for logs and metrics. */
export interface CatalogEvents {
  /** A snapshot came into force. */
  loaded(snapshot: Snapshot): void;
  /** The text changed without changing its meaning, or is whole again. */
  unchanged(snapshot: Snapshot): void;
  /** The text is broken. The last good snapshot stays in force. */
  refused(faults: readonly Fault[]): void;
}

/** Makes the events of one catalog. */
export function createCatalogEvents({
  log,
  metrics,
}: Pick<CatalogContext, "log" | "metrics">): CatalogEvents {
  const reads = metrics.counter(
    "genmesh_catalog_reads_total",
    "Contents of the catalog file that were judged.",
    ["result"],
  );
  const valid = metrics.gauge(
    "genmesh_catalog_file_valid",
    "1 where the catalog file as it stands is in force, 0 where an earlier one is.",
    [],
  );
  const info = metrics.gauge("genmesh_catalog_info", "The snapshot in force.", ["version"]);
  return {
    loaded(snapshot) {
      reads.of("loaded").value++;
      valid.of().value = 1;
      info.reset();
      info.of(snapshot.version).value = 1;
      log.info({ version: snapshot.version, models: snapshot.models.length }, "catalog loaded");
    },
    unchanged(snapshot) {
      reads.of("unchanged").value++;
      valid.of().value = 1;
      log.info({ version: snapshot.version }, "catalog file changed, its content did not");
    },
    refused(faults) {
      reads.of("refused").value++;
      valid.of().value = 0;
      for (const fault of faults) {
        log.error({ path: fault.path }, `catalog file refused: ${faultText(fault)}`);
      }
    },
  };
}
