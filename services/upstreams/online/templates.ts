import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import type { FoundFault } from "#kit/base/valid-parts.ts";
import { parseOutputPath } from "#kit/template/output-path.ts";
import type { Model, ModelCall } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { inputsOf } from "./samples.ts";
import { hasText, type SchemaFault, schemaFaults } from "./schema.ts";

/** How a service describes a model of its own. */
export interface ModelSchemas {
  /** What the schemas refer to. */
  document: JsonObject;
  input: JsonValue | undefined;
  /** Of the answer that the call's `output` is a path in. */
  output: JsonValue | undefined;
}

/** What a call would send, and expects, that the service's own description of the model does not have; paths are within the call. */
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

/** What only some generations lack (no reference was sent) is theirs to send. */
function isEverywhere(fault: SchemaFault, ofEach: readonly SchemaFault[][]): boolean {
  const name = JSON.stringify(fault.path);
  return ofEach.every((faults) =>
    faults.some((one) => one.isMissing && JSON.stringify(one.path) === name),
  );
}
