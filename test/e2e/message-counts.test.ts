import { afterAll, expect, test } from "vitest";
import type { Asked } from "./caller.ts";
import { startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

const errorOf = ({ status, json }: Pick<Asked, "status" | "json">) =>
  `${status} ${json?.type} ${json?.error?.type} ${json?.error?.code}`;

test("a count of tokens costs nothing, needs no bound of the output, and grows with the text", async () => {
  const poor = await world.caller({ usdMicros: 0n });
  const count = (body: object) => poor.post("/messages/count_tokens", body);
  const counted = { model: "chat-1", messages: [{ role: "user", content: "say hello" }] };
  const countOf = async (content: string) => {
    const messages = [{ role: "user", content }];
    const { status, json } = await count({ ...counted, messages, system: "Be kind." });
    expect({ status, fields: Object.keys(json) }).toEqual({
      status: 200,
      fields: ["input_tokens"],
    });
    return json.input_tokens;
  };
  expect(await countOf("one two three")).toBeGreaterThan(await countOf("one"));
  expect(await poor.balance()).toMatchObject({ reserved: 0, monthSpend: 0 });
  const thinking = { type: "enabled", budget_tokens: 5_000 };
  expect((await count({ ...counted, thinking })).status).toBe(200);
  const odd = await count({ ...counted, thinking: { ...thinking, budget_tokens: "5000" } });
  expect(errorOf(odd)).toBe("400 error invalid_request_error invalid_type");
  const refused = await count({ ...counted, model: "none" });
  expect(errorOf(refused)).toBe("404 error not_found_error model_not_found");
});
