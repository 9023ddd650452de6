// Shows a version of the catalog to operators, in the console and by the command.

import type { CatalogVersion } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isoTimeOrNull } from "./answer-values.ts";

/** A version of the catalog as operators see it, in the console and by the command. */
export function versionDocument({ number, actor, note, madeTime, sha256, models }: CatalogVersion) {
  return {
    object: "catalog.version",
    number,
    actor: actor || null,
    note: note || null,
    createdAt: isoTimeOrNull(madeTime),
    sha256,
    models,
  };
}

/** The faults of a text that was to be in force, in one sentence. */
export function refusedText(faults: readonly { path: string; message: string }[]): string {
  const [first] = faults;
  const more = faults.length > 1 ? `, and ${faults.length - 1} more faults` : "";
  return `The catalog has faults, and nothing was changed. ${first?.path || "The file"}: ${first?.message}${more}.`;
}
