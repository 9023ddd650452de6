import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { stickOf } from "./stick.ts";

const user = (content: string) => ({ role: "user", content });
const first = { model: "m", instructions: "Be kind.", input: [user("Hi")] };

test("a conversation keeps its name as it goes on", () => {
  const answer = { role: "assistant", content: [{ type: "output_text", text: "Hello" }] };
  const next = { ...first, input: [...first.input, answer, user("And then?")] };
  expect(stickOf("a", next)).toBe(stickOf("a", first));
});

test.each<[string, JsonObject]>([
  ["another first message", { ...first, input: [user("Hello")] }],
  ["other instructions", { ...first, instructions: "Be brief." }],
  ["another model", { ...first, model: "n" }],
  ["a key of its own", { ...first, prompt_cache_key: "k" }],
])("%s makes another one", (_, asked) => {
  expect(stickOf("a", asked)).not.toBe(stickOf("a", first));
});

test("another account has other conversations", () => {
  const asked = { ...first, prompt_cache_key: "k" };
  expect(stickOf("b", asked)).not.toBe(stickOf("a", asked));
});

test("the key alone names it, where there is one", () => {
  const asked = { model: "m", prompt_cache_key: "k" };
  expect(stickOf("a", { ...asked, input: "one" })).toBe(stickOf("a", { ...asked, input: "two" }));
});

test("the edge's name for it counts before its beginning, and behind its key", () => {
  expect(stickOf("a", first, "s")).not.toBe(stickOf("a", first));
  expect(stickOf("a", first, "s")).toBe(stickOf("a", { model: "m", input: "Hello" }, "s"));
  expect(stickOf("a", first, "")).toBe(stickOf("a", first));
  const keyed = { ...first, prompt_cache_key: "k" };
  expect(stickOf("a", keyed, "s")).toBe(stickOf("a", keyed));
});

test("all forms of a first message are read, and all that stands before it", () => {
  const parts = [{ type: "input_text", text: "Hi" }];
  const one = stickOf("a", { ...first, input: "Hi" });
  expect(stickOf("a", first)).toBe(one);
  expect(stickOf("a", { ...first, input: [{ role: "user", content: parts }] })).toBe(one);
  const system = { role: "system", content: "Be kind." };
  expect(stickOf("a", { model: "m", messages: [system, user("Hi")] })).toBe(one);
  expect(stickOf("a", { model: "m", messages: [user("Hi")] })).not.toBe(one);
});

test("the beginning alone is looked at", () => {
  const long = "x".repeat(4_096);
  const name = (input: string) => stickOf("a", { model: "m", input });
  expect(name(`${long}1`)).toBe(name(`${long}2`));
  expect(name(`1${long}`)).not.toBe(name(`2${long}`));
});

test("a request without any text has a name, too", () => {
  expect(stickOf("a", { model: "m" })).toBe(stickOf("a", { model: "m", input: [7, null] }));
});
