import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { comfyCallFaults, readGraph } from "./catalog.ts";

const graph: JsonObject = {
  "3": { class_type: "KSampler", inputs: { seed: 1, positive: ["6", 0] } },
  "6": { class_type: "CLIPTextEncode", inputs: { text: "x", "a.b": 1 } },
  "9": { class_type: "SaveImage", inputs: { images: ["3", 0] } },
  "12": { class_type: "Noise", inputs: { seed: 1 } },
};
const input: JsonObject = { "6.text": "${prompt}", "3.seed": "${seed}" };
const at = (...rest: readonly (string | number)[]) => rest;
const faultsOf = (call: {
  workflow?: { text: string } | { fault: string };
  input?: JsonObject;
  output?: string;
}) =>
  comfyCallFaults({ workflow: { text: JSON.stringify(graph) }, input, output: "9", ...call }, at);

test("a call that fits its workflow has no faults, with any value in any place", () => {
  expect(faultsOf({})).toEqual([]);
  const mapped = { $map: "${seed}", 1: 2 };
  expect(faultsOf({ input: { "3.seed": mapped, "6.a.b": 3 } })).toEqual([]);
});

test.each([
  ["no JSON", "{", /no JSON/],
  ["no object", "[]", /no workflow in API format/],
  ["no node", "{}", /no workflow in API format/],
  ["a node without a class", JSON.stringify({ 3: { inputs: {} } }), /API format/],
  ["a node without inputs", JSON.stringify({ 3: { class_type: "KSampler" } }), /API format/],
  [
    "the editor's format",
    JSON.stringify({
      last_node_id: 9,
      nodes: [{ id: 3, type: "KSampler" }],
      links: [],
      groups: [],
    }),
    /editor \(nodes and links\); save it there with "Export \(API\)"/,
  ],
])("a workflow file of %s is a fault", (_, text, message) => {
  expect(faultsOf({ workflow: { text } })).toEqual([
    { path: ["workflow"], message: expect.stringMatching(message) },
  ]);
});

test("a file that could not be read is a fault", () => {
  const fault = "the file cannot be read (ENOENT)";
  expect(faultsOf({ workflow: { fault } })).toEqual([{ path: ["workflow"], message: fault }]);
});

test.each([
  ["a key without an input", "6", /must name a node and one of its inputs/],
  ["a key that ends in a dot", "6.", /must name a node and one of its inputs/],
  ["a node that it lacks", "7.text", /no node of the workflow/],
  ["a node by a name that every object has", "constructor.name", /no node of the workflow/],
  ["an input that the node lacks", "6.txt", /no input of that node/],
])("%s is a fault", (_, key, message) => {
  expect(faultsOf({ input: { ...input, [key]: "${prompt}" } })).toEqual([
    { path: ["input", key], message: expect.stringMatching(message) },
  ]);
});

test("so are an output that it lacks, no seed, and a seed that changes nothing", () => {
  expect(faultsOf({ output: "10" })).toEqual([
    { path: ["output"], message: "names no node of the workflow" },
  ]);
  for (const seed of [{}, { "3.seed": 5 }, { "3.seed": "$${seed}" }]) {
    expect(faultsOf({ input: { "6.text": "${prompt}", ...seed } })).toEqual([
      { path: ["input"], message: expect.stringMatching(/^places no seed: ComfyUI answers/) },
    ]);
  }
  expect(faultsOf({ input: { "12.seed": "${seed}" } })).toEqual([
    { path: ["input"], message: expect.stringMatching(/in no node that the output is made from/) },
  ]);
});

test("a graph that goes round in a circle is read", () => {
  const round = { 1: { class_type: "A", inputs: { seed: 1, from: ["1", 0] } } };
  expect(readGraph(JSON.stringify(round))).toEqual({ graph: round });
  const call = { workflow: { text: JSON.stringify(round) }, output: "1" };
  expect(faultsOf({ ...call, input: { "1.seed": "${seed}" } })).toEqual([]);
});
