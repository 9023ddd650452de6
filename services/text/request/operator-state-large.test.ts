import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { longestTurn } from "../../../test/support/longest-turn.ts";
import { keepStateOut } from "./operator-state.ts";

// The cost of a body of a million values. Each of them is looked at.

const looked = { ourFiles: new Set<JsonObject>(), onTool() {}, passParameters: [] };

test("a reference among a million values, at the end, is found", async () => {
  const list = [...Array.from({ length: 300_000 }, () => ({ a: 1 })), { file_id: "f" }];
  const found = async () => await inTurns(keepStateOut({ a: { b: list } }, looked));
  const refusal = { reason: ErrorReason.UNSUPPORTED_PARAMETER, param: "a.b[300000].file_id" };
  await expect(found()).rejects.toMatchObject(refusal);
});

test.each<[string, () => JsonObject[string]]>([
  ["lists", () => Array.from({ length: 499_000 }, () => [])],
  ["objects", () => Array.from({ length: 333_000 }, () => ({ type: "function" }))],
  ["unknown names", () => Array.from({ length: 250_000 }, () => ({ role: "user", odd: 1, x: 2 }))],
  ["values", () => Array.from({ length: 990_000 }, () => null)],
])("a million values keep the event loop for less than 50 ms at a time: %s", async (_, make) => {
  // In the input, unknown properties are taken out.
  const body = () => ({ a: { b: make() }, input: make() }) as JsonObject;
  await inTurns(keepStateOut(body(), looked));
  // The least of at most three runs, to leave out other work of the process, above all collecting garbage.
  let longest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 3 && longest >= 50; n++) {
    const hostile = body();
    longest = await longestTurn(async () => void (await inTurns(keepStateOut(hostile, looked))));
  }
  expect(longest).toBeLessThan(50);
});
