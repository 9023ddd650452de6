import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { inPart, perfect, read } from "../../../../test/support/responses-streams.ts";

// Text that a caller is shown of a stream is counted as output once, in each of the forms in which upstreams show it.

const said = "All of this was generated.";
const begin = perfect.slice(0, 2);
const end = { type: "response.completed", response: { id: "resp_1", status: "completed" } };
const delta = { type: "response.output_text.delta", ...inPart };
const part = { type: "output_text", text: said, annotations: [] };
const item = { id: "msg_1", type: "message", role: "assistant", content: [part] };
const place = { output_index: 0, content_index: 0 };

const counted = (events: JsonObject[]) =>
  read([...begin, ...events, end])
    .out.map(({ text }) => text)
    .join("");

describe("counts once", () => {
  const ways: [name: string, events: JsonObject[]][] = [
    ["text in place of a delta", [{ ...delta, text: said }]],
    ["a delta that is an object", [{ ...delta, delta: { text: said } }]],
    [
      "a part that begins with its text",
      [{ type: "response.content_part.added", ...inPart, part }],
    ],
    [
      "a part of a kind that we do not know",
      [
        {
          ...{ type: "response.content_part.added", ...inPart },
          part: { type: "novel", text: said },
        },
      ],
    ],
    ["an event that we do not know", [{ type: "response.novel", text: said }]],
    ["an item in an event that we do not know", [{ type: "response.novel", item }]],
    [
      "an item of another role",
      [{ type: "response.output_item.done", output_index: 0, item: { ...item, role: "user" } }],
    ],
    [
      "deltas, and the same once more in events that we know and do not know",
      [
        { ...delta, delta: "All of " },
        { ...delta, delta: "this was generated." },
        { type: "response.output_text.done", ...inPart, text: said },
        { type: "response.content_part.done", ...inPart, part },
        { type: "response.novel.done", ...place, text: said },
        { type: "response.output_item.done", output_index: 0, item },
      ],
    ],
    [
      "an odd delta, and the same in its item",
      [
        { ...delta, delta: { text: said } },
        { type: "response.output_item.done", output_index: 0, item },
      ],
    ],
  ];
  test.for(ways)("%s", ([, events]) => {
    expect(counted(events)).toBe(said);
  });

  test("what the end of a text has beyond its deltas", () => {
    const done = { type: "response.output_text.done", ...inPart, text: "Something else, longer" };
    expect(counted([{ ...delta, delta: "short" }, done]).length).toBe(done.text.length);
  });
});

test("no event but the last shows items of a response", () => {
  const novel = { type: "response.novel", response: { id: "resp_1", output: [item] } };
  const { data } = read([...begin, novel, end]);
  expect(data.find(({ type }) => type === "response.novel").response.output).toEqual([]);
});
