// For `genmesh catalog check --online`: asks a ComfyUI server whether it has the nodes and files that a workflow needs.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { FoundFault } from "#kit/base/valid-parts.ts";
import type { Model, ModelCall } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { OnlineCheck } from "../online/index.ts";
import { inputsOf } from "../online/samples.ts";
import { schemaFaults } from "../online/schema.ts";
import { type Graph, type GraphNode, placeOf, readGraph } from "./catalog.ts";

/** Compares workflows with the server's nodes: classes, inputs, files of models, bounds. */
export const checkComfyUiOnline: OnlineCheck = async ({ upstream, model, read }) => {
  const { value, fault } = await read(upstream, `${upstream.baseUrl}/object_info`);
  if (fault !== undefined) return [{ path: [], message: `the server's list of nodes ${fault}` }];
  if (!isJsonObject(value)) return [];
  return model.calls.flatMap((call) =>
    callFaults(model, call, value).map((one) => ({ call, ...one })),
  );
};

function callFaults(model: Model, call: ModelCall, classes: JsonObject): FoundFault[] {
  const read = readGraph(call.workflow);
  if ("fault" in read) return [{ path: ["workflow"], message: read.fault }];
  const inputs = inputsOf(model, call);
  const placed = new Set(inputs.flatMap((input) => Object.keys(input)));
  return [
    ...Object.entries(read.graph).flatMap(([id, node]) => nodeFaults(id, node, classes, placed)),
    ...inputs.flatMap((input) => inputFaults(input, read.graph, classes)),
    ...outputFaults(read.graph[call.output], classes),
  ];
}

/** A node of the file: its class, the inputs that the class requires, and the constants that no call replaces. */
function nodeFaults(
  id: string,
  { class_type: name, inputs }: GraphNode,
  classes: JsonObject,
  placed: ReadonlySet<string>,
): FoundFault[] {
  const path = ["workflow"];
  const info = classes[name];
  if (!isJsonObject(info)) {
    return [{ path, message: `node ${id} is a ${name}, which the server does not have` }];
  }
  const { required, optional } = specsOf(info);
  const missing = Object.keys(required)
    .filter((input) => !Object.hasOwn(inputs, input))
    .map((input) => ({ path, message: `node ${id} lacks the input ${input} of a ${name}` }));
  const wrong = Object.entries(inputs).flatMap(([input, value]) => {
    const spec = required[input] ?? optional[input];
    if (placed.has(`${id}.${input}`)) return [];
    return valueFaults(value, spec).map(({ message }) => ({
      ...{ path, message: `the input ${input} of node ${id} ${message}` },
    }));
  });
  return [...missing, ...wrong];
}

/** The values that a call gives to nodes. */
function inputFaults(input: JsonObject, graph: Graph, classes: JsonObject): FoundFault[] {
  return Object.entries(input).flatMap(([key, value]) => {
    const place = placeOf(key);
    const info = classes[(place && graph[place.node]?.class_type) ?? ""];
    if (!place || !isJsonObject(info)) return [];
    const { required, optional } = specsOf(info);
    return valueFaults(value, required[place.input] ?? optional[place.input]).map(
      ({ message }) => ({ path: ["input", key], message }),
    );
  });
}

function outputFaults(node: GraphNode | undefined, classes: JsonObject): FoundFault[] {
  const info = classes[node?.class_type ?? ""];
  if (!isJsonObject(info) || info.output_node === true) return [];
  return [{ path: ["output"], message: "names a node that saves nothing" }];
}

function specsOf({ input }: JsonObject): { required: JsonObject; optional: JsonObject } {
  const { required, optional } = isJsonObject(input) ? input : {};
  return {
    required: isJsonObject(required) ? required : {},
    optional: isJsonObject(optional) ? optional : {},
  };
}

/** Checks a value by an input's `[type, bounds]`. Another node's output, and uploaded files, are not judged. */
function valueFaults(value: JsonValue, spec: JsonValue | undefined): FoundFault[] {
  if (!Array.isArray(spec) || Array.isArray(value)) return [];
  const [type, more] = spec;
  const bounds = isJsonObject(more) ? more : {};
  if (bounds.image_upload === true) return [];
  const listed = Array.isArray(type) ? type : type === "COMBO" ? bounds.options : undefined;
  const schema = Array.isArray(listed) ? { enum: listed } : schemaOf(type, bounds);
  return schema ? schemaFaults(value, schema, {}) : [];
}

function schemaOf(type: JsonValue | undefined, { min, max }: JsonObject): JsonObject | undefined {
  const bounds = { minimum: min ?? null, maximum: max ?? null };
  if (type === "INT") return { type: "integer", ...bounds };
  if (type === "FLOAT") return { type: "number", ...bounds };
  if (type === "BOOLEAN") return { type: "boolean" };
  return type === "STRING" ? { type: "string" } : undefined;
}
