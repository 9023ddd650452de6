import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
let bodies: string[];
beforeAll(async () => {
  edge = await startEdge({
    media: {
      submitJob({ body }) {
        bodies.push(Buffer.from(body).toString());
        return refuse(ErrorReason.UNSUPPORTED_PARAMETER);
      },
    },
    text: {
      async *streamGenerate({ body }) {
        bodies.push(Buffer.from(body).toString());
        yield { part: { case: "complete", value: Buffer.from('{"text":"hi"}') } };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  bodies = [];
});

async function transcribe(fields: [name: string, value: string][]) {
  const body = new FormData();
  body.append("file", new Blob(["sound"]), "said.wav");
  for (const [name, value] of fields) body.append(name, value);
  const answer = await edge.ask("/v1/audio/transcriptions", { method: "POST", body });
  return { status: answer.status, json: await answer.json() };
}

test("a field of an edit that has an odd name is media's to judge", async () => {
  const body = new FormData();
  for (const [name, value] of [
    ["__proto__", "a"],
    ["constructor", "b"],
    ["n", "2"],
  ] as const) {
    body.append(name, value);
  }
  const answer = await edge.ask("/v1/images/edits", { method: "POST", body });
  expect(answer.status).toBe(400);
  expect(bodies).toEqual(['{"__proto__":"a","constructor":"b","n":2,"input_reference":[]}']);
});

test("a field's name is any text, as a list too", async () => {
  const asked = await transcribe([
    ["constructor[]", "a"],
    ["__proto__[]", "b"],
    ["__proto__[]", "c"],
    ["toString", "d"],
  ]);
  expect(asked).toEqual({ status: 200, json: { text: "hi" } });
  expect(bodies).toEqual([
    expect.stringMatching(/^\{"constructor":\["a"\],"__proto__":\["b","c"\],"toString":"d","file"/),
  ]);
});

test.each<[string, [string, string][]]>([
  [
    "a number",
    [
      ["temperature", "0.5"],
      ["temperature[]", "1"],
    ],
  ],
  [
    "a text",
    [
      ["language", "en"],
      ["language[]", "de"],
    ],
  ],
  [
    "a list",
    [
      ["include[]", "logprobs"],
      ["include", "logprobs"],
    ],
  ],
])("%s is sent once: as a list or not", async (_what, fields) => {
  const { status, json } = await transcribe(fields);
  expect([status, json]).toMatchObject([
    400,
    { error: { code: "invalid_value", param: fields[0]?.[0].replace("[]", "") } },
  ]);
  expect(bodies).toEqual([]);
});
