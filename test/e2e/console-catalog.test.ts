import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { type CatalogObject, promptMark } from "./catalog.ts";
import type { Document } from "./media-world.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ isCatalogStored: true, env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const operator = operatorSession(world);
const { get, post } = operator;

beforeAll(async () => {
  if (isOwnWorld) await operator.signIn();
});

/** The text in force, with another price for a token of "scripted". */
async function repriced(usdMicrosPerToken: number): Promise<string> {
  const { json } = await get("/catalog/text");
  const catalog: CatalogObject = JSON.parse(json.yaml);
  const models = catalog.models.map((model) =>
    model.id === "scripted"
      ? {
          ...model,
          pricing: {
            inputUsdMicrosPerMillionTokens: usdMicrosPerToken * 1_000_000,
            outputUsdMicrosPerMillionTokens: usdMicrosPerToken * 1_000_000,
          },
        }
      : model,
  );
  return JSON.stringify({ ...catalog, models });
}

/** The cost of one request to "scripted", which has 15 tokens. */
async function cost(): Promise<number> {
  const caller = await world.caller();
  const { json } = await caller.post("/responses", { model: "scripted", input: "Hi" });
  return json.usage.costUsdMicros;
}

describe("an operator's catalog", () => {
  test("is changed, seen by callers, listed with who and why, and rolled back", async () => {
    world.play();
    expect((await get("/catalog/text")).json).toMatchObject({
      ...{ version: null, isEditable: true, newest: 0 },
    });
    const yaml = await repriced(100);
    const order = { yaml, expected: 0, note: "dearer", operationId: "dearer" };
    expect((await post("/catalog/versions", order, { secret: "" })).code).toBe("secret_required");
    const made = await post("/catalog/versions", order);
    expect(made).toMatchObject({
      status: 201,
      json: { number: 1, note: "dearer", replayed: false },
    });
    await until("the new price", async () => (await cost()) === 1_500);
    expect((await post("/catalog/versions", order)).json).toMatchObject({
      ...{ number: 1, replayed: true },
    });

    const back = { version: 0, expected: 1, note: "too dear", operationId: "back" };
    expect((await post("/catalog/versions", back)).json).toMatchObject({ number: 2 });
    await until("the old price", async () => (await cost()) < 1_500);
    const { json } = await get("/catalog/versions");
    expect(json.data.map(({ number, note }: Document) => [number, note])).toEqual([
      [2, "too dear"],
      [1, "dearer"],
      [0, null],
    ]);
    expect(json.data[0].actor).toBe(json.data[1].actor);
    const { json: audit } = await get("/audit");
    const lines = audit.data.filter(({ action }: Document) => action.startsWith("catalog."));
    expect(lines.at(0)).toMatchObject({
      ...{ action: "catalog.roll_back", target: "version 2", outcome: "done" },
      details: { expected: 1, version: 0, operationId: "back" },
    });
  });

  test("stays as it is where a change has faults, is stale, or is no change at all", async () => {
    const { newest } = (await get("/catalog/text")).json;
    const put = (more: object) =>
      post("/catalog/versions", {
        yaml: "models: []",
        expected: newest,
        operationId: "x",
        ...more,
      });
    const bad = await put({ yaml: "models: 7" });
    expect(bad).toMatchObject({ status: 400, code: "invalid_value" });
    expect(bad.json.error.message).toMatch(/^The catalog has faults, and nothing was changed\. /);
    const stale = await put({ yaml: await repriced(3), expected: newest - 1 });
    expect(stale).toMatchObject({ status: 409, code: "state_conflict" });
    expect(stale.json.error.message).toMatch(/^Another version of the catalog/);
    for (const [more, param] of [
      [{ yaml: 7 }, "yaml"],
      [{ expected: undefined }, "expected"],
      [{ note: "n".repeat(201) }, "note"],
      [{ version: 99, expected: newest }, "version"],
      [{ operationId: "" }, "operationId"],
    ] as const) {
      expect((await put(more)).json.error.param, param).toBe(param);
    }
    expect((await get("/catalog/text")).json.newest).toBe(newest);
  });

  test("is downloaded as it was written, now and as it was", async () => {
    const file = async (query: string) => {
      const answer = await fetch(`${operator.origin}/console/api/admin/catalog/file${query}`, {
        headers: { cookie: operator.cookie, "sec-fetch-site": "same-origin" },
      });
      return { name: answer.headers.get("content-disposition"), text: await answer.text() };
    };
    const { yaml, newest } = (await get("/catalog/text")).json;
    expect(await file("")).toEqual({
      name: `attachment; filename="catalog-${newest}.yaml"`,
      text: yaml,
    });
    // An operator edits the developer prompt too. It is in no answer to a caller and in no line of the log.
    expect(yaml).toContain(promptMark);
    expect((await file("?version=1")).text).toContain("100000000");
    expect((await get("/catalog/text?version=77")).status).toBe(404);
    expect((await get("/catalog/text?version=x")).status).toBe(400);
  });

  test("keeps the prices of a request that runs", async () => {
    const { newest } = (await get("/catalog/text")).json;
    const put = (yaml: string, expected: number) =>
      post("/catalog/versions", { yaml, expected, operationId: `running-${expected}` });
    await put(await repriced(10), newest);
    await until("the price", async () => (await cost()) === 150);
    const caller = await world.caller();
    const { promise, resolve } = Promise.withResolvers<void>();
    const seen = world.play({ kind: "ok", firstByteAfter: promise });
    const running = caller.post("/responses", { model: "scripted", input: "Hi" });
    await until("it to run", () => seen.length === 1);
    await put(await repriced(70), newest + 1);
    world.play();
    await until("the later price", async () => (await cost()) === 1_050);
    resolve();
    expect((await running).json.usage.costUsdMicros).toBe(150);
  });
});
