// Reads the workflow file that a call of the catalog names, and finds faults in how the call uses it. The driver reads the same
// graph.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { FoundFault } from "#kit/base/valid-parts.ts";
import { partsOf } from "#kit/template/template.ts";
import type { At, OfferedCall } from "../catalog-rules.ts";

/** A graph in API format: nodes by their ids. */
export type Graph = Readonly<Record<string, GraphNode>>;

/** A node of a graph. An input that another node makes is `[id, slot]`. */
export interface GraphNode extends JsonObject {
  class_type: string;
  inputs: JsonObject;
}

/** A workflow file's graph, or the file's fault. */
export function readGraph(text: string): { graph: Graph } | { fault: string } {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: "the file is no JSON" };
  }
  if (!isJsonObject(value)) return { fault: notApiFormat };
  if (Array.isArray(value.nodes) && value.links !== undefined) return { fault: editorsFormat };
  const nodes = Object.entries(value);
  const graph = nodes.filter((entry): entry is [string, GraphNode] => isNode(entry[1]));
  if (nodes.length === 0 || graph.length < nodes.length) return { fault: notApiFormat };
  return { graph: Object.fromEntries(graph) };
}

const notApiFormat =
  "the file is no workflow in API format: nodes by their ids, each with class_type and inputs";
const editorsFormat =
  'the file is in the format of ComfyUI\'s editor (nodes and links); save it there with "Export (API)"';

function isNode(value: JsonValue): value is GraphNode {
  return isJsonObject(value) && typeof value.class_type === "string" && isJsonObject(value.inputs);
}

/** The node and the input in a key of `call.input`: `6.text`. Names of inputs may have dots. */
export function placeOf(key: string): { node: string; input: string } | undefined {
  const dot = key.indexOf(".");
  if (dot < 1 || dot === key.length - 1) return undefined;
  return { node: key.slice(0, dot), input: key.slice(dot + 1) };
}

/** Faults in a call's use of its workflow. */
export function comfyCallFaults({ workflow, input, output }: OfferedCall, at: At): FoundFault[] {
  if (!workflow) return [];
  if (workflow.fault !== undefined) return [{ path: at("workflow"), message: workflow.fault }];
  const read = readGraph(workflow.text);
  if ("fault" in read) return [{ path: at("workflow"), message: read.fault }];
  const { graph } = read;
  const faults: FoundFault[] = Object.keys(input).flatMap((key) => {
    const message = placeFault(graph, key);
    return message === undefined ? [] : [{ path: at("input", key), message }];
  });
  if (!Object.hasOwn(graph, output)) {
    return [...faults, { path: at("output"), message: "names no node of the workflow" }];
  }
  const seeded = Object.entries(input).flatMap(([key, template]) =>
    placesSeed(template) ? [placeOf(key)?.node ?? ""] : [],
  );
  const made = nodesBehind(graph, output);
  const path = at("input");
  if (seeded.length === 0) {
    faults.push({ path, message: `places no seed: ${cached}` });
  } else if (!seeded.some((node) => made.has(node))) {
    const message = `places the seed in no node that the output is made from: ${cached}`;
    faults.push({ path, message });
  }
  return faults;
}

const cached = "ComfyUI answers an equal graph with the files of the one before";

function placeFault(graph: Graph, key: string): string | undefined {
  const place = placeOf(key);
  if (!place) return "must name a node and one of its inputs, like 6.text";
  const node = Object.hasOwn(graph, place.node) ? graph[place.node] : undefined;
  if (!node) return "names no node of the workflow";
  return Object.hasOwn(node.inputs, place.input) ? undefined : "names no input of that node";
}

function placesSeed(template: JsonValue): boolean {
  return partsOf(template).some((part) => {
    if (part.kind === "fault") return false;
    return (part.kind === "map" ? part.of : part.placeholder).name === "seed";
  });
}

/** A node and all nodes from which it is made. */
function nodesBehind(graph: Graph, id: string): ReadonlySet<string> {
  const found = new Set([id]);
  for (const node of found) {
    for (const value of Object.values(graph[node]?.inputs ?? {})) {
      const source = Array.isArray(value) ? value[0] : undefined;
      if (typeof source === "string" && Object.hasOwn(graph, source)) found.add(source);
    }
  }
  return found;
}
