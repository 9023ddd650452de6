// Refuses a catalog whose calls of Replicate's models have a name or an output that Replicate does not have.

import type { FoundFault } from "#kit/base/valid-parts.ts";
import { parseOutputPath } from "#kit/template/output-path.ts";
import { modelNameFaults } from "../by-template/catalog.ts";
import type { At, OfferedCall, OfferedModel } from "../catalog-rules.ts";

/** Owner and name, and a version behind them. */
const name = /^[\w.-]+\/[\w.-]+(:[0-9a-f]{64})?$/;

/** Models at Replicate have an owner and a name. */
export function replicateFaults(model: OfferedModel, at: At): FoundFault[] {
  return modelNameFaults(model, at, name, "must be owner/name or owner/name:version at Replicate");
}

/** One key of a prediction holds its model's output. */
export function replicateCallFaults({ output }: OfferedCall, at: At): FoundFault[] {
  if (parseOutputPath(output)?.[0] === "output") return [];
  const message = "must begin with output, where Replicate puts what a model made";
  return [{ path: at("output"), message }];
}
