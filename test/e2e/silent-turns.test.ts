import { afterAll, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const caller = await world.caller();
/** The forms of a turn without a text of the model in a history. */
const silent = [
  { role: "assistant", content: null },
  { role: "assistant", content: null, tool_calls: [] },
  { role: "assistant" },
];

test.each([
  ["legacy", "messages"],
  ["scripted", "input"],
])("an empty turn of the assistant in chat goes to %s as an empty text", async (model, list) => {
  for (const turn of silent) {
    const seen = world.play();
    const messages = [{ role: "user", content: "a" }, turn, { role: "user", content: "b" }];
    for (const stream of [false, true]) {
      expect((await caller.post("/chat/completions", { model, messages, stream })).status).toBe(
        200,
      );
    }
    for (const { body } of seen) {
      const [before, between, after] = body[list].slice(-3);
      expect([before.content, after.content]).toEqual(["a", "b"]);
      expect(between).toMatchObject({ role: "assistant", content: "" });
    }
    expect(seen).toHaveLength(2);
  }
});

test("in Responses and compact as well", async () => {
  const seen = world.play();
  const input = [
    { role: "assistant", content: null },
    { role: "user", content: "b" },
  ];
  for (const path of ["/responses", "/responses/compact"]) {
    expect((await caller.post(path, { model: "scripted", input })).status).toBe(200);
  }
  for (const { body } of seen) {
    expect(body.input.at(-2)).toMatchObject({ role: "assistant", content: "" });
  }
});

test("a turn of another role says something", async () => {
  for (const role of ["system", "developer", "user"]) {
    const chat = { model: "scripted", messages: [{ role, content: null }] };
    const responses = { model: "scripted", input: [{ role, content: null }] };
    expect(refusalOf(await caller.post("/chat/completions", chat))).toBe(
      "400 invalid_request_error missing_required_parameter messages[0].content",
    );
    expect(refusalOf(await caller.post("/responses", responses))).toBe(
      "400 invalid_request_error missing_required_parameter input[0].content",
    );
  }
});
