import type { FoundFault } from "#kit/valid-parts.ts";
import { modelNameFaults } from "../called/catalog.ts";
import type { At, OfferedModel } from "../catalog-rules.ts";

/** Owner and name, and a version behind them. */
const name = /^[\w.-]+\/[\w.-]+(:[0-9a-f]{64})?$/;

/** Models at Replicate have an owner and a name. */
export function replicateFaults(model: OfferedModel, at: At): FoundFault[] {
  return modelNameFaults(model, at, name, "must be owner/name or owner/name:version at Replicate");
}
