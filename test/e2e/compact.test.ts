import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { developerPrompt } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();

describe("compact and continue, on the builtin model", () => {
  const conversation = [
    { role: "user", content: "My dog is called Pinocchio." },
    { role: "assistant", content: "A fine name." },
  ];

  test("the output array, sent back unchanged, goes on where the conversation was", async () => {
    const compacted = await caller.post("/responses/compact", {
      model: "chat-1",
      input: conversation,
    });
    expect(compacted.status).toBe(200);
    const { object, id, created_at, output, usage } = compacted.json;
    expect(object).toBe("response.compaction");
    expect(id).toMatch(/./);
    expect(Number.isInteger(created_at)).toBe(true);
    expect(usage.input_tokens).toBeGreaterThan(0);
    const compaction = output.find((item: { type: string }) => item.type === "compaction");
    expect(compaction.id).toMatch(/./);
    expect(compaction.encrypted_content).toMatch(/./);
    expect(compaction.encrypted_content).not.toContain("Pinocchio");
    const next = await caller.post("/responses", {
      model: "chat-1",
      input: [...output, { role: "user", content: "What did I say?" }],
    });
    expect(next.status).toBe(200);
    expect(next.json.output[0].content[0].text).toContain("Pinocchio");
    const again = await caller.post("/responses/compact", {
      model: "chat-1",
      input: [...output, { role: "user", content: "It barks." }],
    });
    expect(again.status).toBe(200);
  });

  test("alone is a whole input, also for a stream", async () => {
    const { json } = await caller.post("/responses/compact", {
      model: "chat-1",
      input: conversation,
    });
    const events = await caller.stream("/responses", { model: "chat-1", input: json.output });
    expect(events.at(-2)?.name).toBe("response.completed");
  });

  test("is never a stream", async () => {
    const body = { model: "chat-1", input: conversation, stream: true };
    const { headers, json } = await caller.post("/responses/compact", body);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect(json.object).toBe("response.compaction");
  });
});

describe("compaction at an upstream", () => {
  ownWorldOnly();

  test("gets the developer prompt, and is charged", async () => {
    const payer = await world.caller({ usdMicros: 1_000_000n });
    const seen = world.play();
    const { json } = await payer.post("/responses/compact", {
      model: "scripted",
      input: [{ role: "user", content: "Hi" }],
      instructions: "Be brief.",
    });
    expect(seen[0]).toMatchObject({ method: "POST", path: "/v1/responses/compact" });
    expect(seen[0]?.body).toEqual({
      model: "up-model",
      input: [{ role: "user", content: "Hi" }],
      instructions: `${developerPrompt}\n\nBe brief.`,
      store: false,
    });
    expect(json.object).toBe("response.compaction");
    expect(await payer.balance()).toMatchObject({ available: 999_970, reserved: 0 });
  });

  test("gives items that go back byte for byte", async () => {
    const state = 'gAAAA+/=_-. ü \\u00e9 "quoted" \t end';
    world.play({ kind: "ok", encrypted: state });
    const { json } = await caller.post("/responses/compact", { model: "scripted", input: "Hi" });
    const compaction = json.output.find((item: { type: string }) => item.type === "compaction");
    expect(compaction).toEqual({ type: "compaction", id: "cmp_up_1", encrypted_content: state });
    const seen = world.play();
    const input = [...json.output, { role: "user", content: "Go on." }];
    const next = await caller.post("/responses", { model: "scripted", input });
    expect(next.status).toBe(200);
    expect(seen[0]?.body.input).toEqual(input);
    expect(seen[0]?.raw.toString()).toContain(JSON.stringify(state));
  });

  test.for([404, 405, 501])(
    "that upstream does not have (%s): not Responses capable",
    async (status) => {
      world.play({ kind: "status", status });
      const payer = await world.caller();
      const asked = await payer.post("/responses/compact", { model: "scripted", input: "Hi" });
      expect(refusalOf(asked)).toBe("400 invalid_request_error model_not_responses_capable model");
      expect(await payer.balance()).toMatchObject({ available: 10_000_000, reserved: 0 });
    },
  );

  test("of a chat-completions upstream: not Responses capable, and nothing is sent", async () => {
    const seen = world.play();
    for (const path of ["/responses", "/responses/compact"]) {
      const asked = await caller.post(path, { model: "legacy", input: "Hi" });
      expect(refusalOf(asked)).toBe("400 invalid_request_error model_not_responses_capable model");
    }
    expect(seen).toHaveLength(0);
  });

  test("goes natively to another deployment, with a key of its own for repeats", async () => {
    const seen = world.play();
    const { status } = await caller.post("/responses/compact", { model: "peer", input: "Hi" });
    expect(status).toBe(200);
    expect(seen[0]?.path).toBe("/v1/responses/compact");
    expect(seen[0]?.headers["idempotency-key"]).toMatch(/./);
  });
});
