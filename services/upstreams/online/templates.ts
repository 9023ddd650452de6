// Compares the call of a model with its service's description, for fal and Replicate.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import type { FoundFault } from "#kit/base/valid-parts.ts";
import { parseOutputPath } from "#kit/template/output-path.ts";
import type { Model, ModelCall } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { inputsOf } from "./samples.ts";
import { hasText, type SchemaFault, schemaFaults } from "./schema.ts";

/** A service's description of one of its models. */
export interface ModelSchemas {
  /** The document that the schemas refer to. */
  document: JsonObject;
  input: JsonValue | undefined;
  /** The schema of the answer, in which the call's `output` is a path. */
  output: JsonValue | undefined;
}

/** The parts of a call's input and output that the service's own description of the model does not have. Paths are within the call. */
export function callAgainst(
  model: Model,
  call: ModelCall,
  { document, input, output }: ModelSchemas,
): FoundFault[] {
  const ofEach = inputsOf(model, call).map((one) => schemaFaults(one, input, document, ["input"]));
  const faults = ofEach.flat().filter((fault) => !fault.isMissing || isEverywhere(fault, ofEach));
  const path = parseOutputPath(call.output);
  const isThere = path === undefined || hasText(output, path, document);
  const message = "leads to no text in what the model answers";
  return [...faults, ...(isThere ? [] : [{ path: ["output"], message }])];
}

/** A key that only some generations lack (no reference was sent) depends on the caller. */
function isEverywhere(fault: SchemaFault, ofEach: readonly SchemaFault[][]): boolean {
  const name = JSON.stringify(fault.path);
  return ofEach.every((faults) =>
    faults.some((one) => one.isMissing && JSON.stringify(one.path) === name),
  );
}
