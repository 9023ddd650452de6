import { afterAll, expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [...usual.models, chat("away", { upstream: "nowhere" })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

test("an upstream's failure is logged with the id that the caller sent, or was given", async () => {
  const caller = await world.caller();
  const body = { model: "away", input: "Hi" };
  const chosen = { headers: { "x-request-id": "mine-4711" } };
  for (const options of [chosen, {}]) {
    const { status, headers } = await caller.post("/responses", body, options);
    expect(status).toBe(502);
    const callId = headers.get("x-request-id");
    const lines = world.log.map((line) => JSON.parse(line));
    expect(lines.filter((line) => line.callId === callId)).toMatchObject([
      { msg: "upstream failed", requestId: expect.stringMatching(/^text_/), upstream: "nowhere" },
    ]);
    if (options === chosen) expect(callId).toBe("mine-4711");
  }
});
