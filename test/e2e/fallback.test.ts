import { afterAll, describe, expect, test } from "vitest";
import type { Behaviour } from "../support/scripted-upstream.ts";
import { refusalOf } from "./caller.ts";
import { chat } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

/** Upstreams with the address of the first one. A test that fails one leaves the others awake. */
const fresh = Array.from({ length: 40 }, (_, at) => `first-${at}`);
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    upstreams: {
      ...usual.upstreams,
      ...Object.fromEntries(fresh.map((name) => [name, { ...usual.upstreams.main }])),
    },
    models: [
      ...usual.models,
      ...fresh.map((upstream) =>
        chat(`backed-${upstream}`, {
          ...{ upstream, upstreamModel: "up-model", fallbackUpstreams: ["backup"] },
        }),
      ),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
ownWorldOnly();

const counts = () => [world.upstream.requests.length, world.backup.requests.length];
/** The first upstream misbehaves, the second is fine. */
const playFirst = (behaviour: Behaviour) => {
  world.play();
  world.upstream.script(behaviour);
};
/** A model whose first upstream no other test has used. */
const backed = () => `backed-${fresh.pop()}`;
const ask = (model: string, stream: boolean) =>
  stream
    ? caller
        .stream("/responses", { model, input: "Hi" })
        .then((events) => events.at(-2)?.json.response)
    : caller.post("/responses", { model, input: "Hi" }).then(({ json }) => json);

describe("before any output the next upstream is tried", () => {
  test.for<[name: string, behaviour: Behaviour]>([
    ["a connection that breaks", { kind: "drop" }],
    ["429", { kind: "status", status: 429, headers: { "retry-after": "60" } }],
    ["500", { kind: "status", status: 500 }],
    ["503", { kind: "status", status: 503 }],
    ["401", { kind: "status", status: 401 }],
    ["403", { kind: "status", status: 403 }],
    ["404 of the model", { kind: "status", status: 404, code: "model_not_found" }],
    ["garbage", { kind: "garbage" }],
  ])("after %s", async ([, behaviour]) => {
    for (const stream of [false, true]) {
      playFirst(behaviour);
      const before = await caller.balance();
      const model = backed();
      const response = await ask(model, stream);
      expect(response).toMatchObject({ status: "completed", model });
      expect(counts()).toEqual([1, 1]);
      expect(world.backup.requests[0]?.headers.authorization).toBe("Bearer backup-key-77aa01");
      expect(world.backup.requests[0]?.body).toEqual(world.upstream.requests[0]?.body);
      // One charge, for the upstream that answered.
      expect(before.available - (await caller.balance()).available).toBe(30);
    }
  });

  test("after a refused connection, in the order of the catalog", async () => {
    for (const stream of [false, true]) {
      world.play();
      expect((await ask("lost-and-backed", stream)).status).toBe("completed");
      expect(counts()).toEqual([1, 0]);
    }
    playFirst({ kind: "status", status: 500 });
    expect((await ask("lost-and-backed", false)).status).toBe("completed");
    expect(counts()).toEqual([1, 1]);
  });

  test("for chat as well", async () => {
    playFirst({ kind: "status", status: 500 });
    const { json } = await caller.post("/chat/completions", {
      model: backed(),
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(json.choices[0].message.content).toBe("Hello from upstream.");
    expect(counts()).toEqual([1, 1]);
  });

  test("and where all fail it is a 502 without a charge", async () => {
    world.play({ kind: "status", status: 503 });
    const before = await caller.balance();
    const asked = await caller.post("/responses", { model: backed(), input: "Hi" });
    expect(refusalOf(asked)).toBe("502 server_error model_request_failed null");
    expect(counts()).toEqual([1, 1]);
    expect(await caller.balance()).toEqual(before);
  });
});

describe("no other upstream is tried", () => {
  test.for<[name: string, behaviour: Behaviour]>([
    ["400", { kind: "status", status: 400 }],
    ["404 of what the caller named", { kind: "status", status: 404 }],
    ["422", { kind: "status", status: 422 }],
  ])("after %s", async ([, behaviour]) => {
    for (const stream of [false, true]) {
      playFirst(behaviour);
      const asked = await caller.post("/responses", { model: backed(), input: "Hi", stream });
      expect(asked.status).toBeGreaterThanOrEqual(400);
      expect(counts()).toEqual([1, 0]);
    }
  });

  test("once an event has come", async () => {
    playFirst({ kind: "ok", break: { how: "destroy", after: 0 } });
    const response = await ask(backed(), true);
    expect(response.status).toBe("failed");
    expect(counts()).toEqual([1, 0]);
  });
});
