import { afterAll, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import { chat } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
type Entry = { id: string; kind: string } & Record<string, unknown>;
const idsOf = ({ json }: { json: { data: Entry[] } }) => json.data.map(({ id }) => id);

describe("GET /models", () => {
  test("is a list of entries in OpenAI's shape, with what a client needs", async () => {
    const { status, json } = await caller.get("/models");
    expect(status).toBe(200);
    expect(json.object).toBe("list");
    for (const entry of json.data) {
      expect(entry).toMatchObject({ object: "model", id: expect.any(String) });
      expect(Number.isInteger(entry.created)).toBe(true);
      expect(typeof entry.owned_by).toBe("string");
      expect(["chat", "image", "video", "speech", "music"]).toContain(entry.kind);
    }
    const chats = json.data.filter(({ kind }: Entry) => kind === "chat");
    expect(chats.length).toBeGreaterThan(0);
    for (const entry of chats) {
      for (const name of ["maxInputTokens", "maxOutputTokens", "safetyMarginTokens"]) {
        expect(Number.isInteger(entry[name])).toBe(true);
      }
      expect(Array.isArray(entry.reasoningEfforts)).toBe(true);
    }
    const videos = json.data.filter(({ kind }: Entry) => kind === "video");
    expect(videos.map(({ id }: Entry) => id)).toContain("svc-video-1-5");
    for (const entry of videos) {
      expect(entry.videoOptions.length).toBeGreaterThan(0);
      expect(entry.availableOptions).toEqual(entry.videoOptions);
      expect(typeof entry.t2vEnabled).toBe("boolean");
      expect(typeof entry.i2vEnabled).toBe("boolean");
      expect(entry.availableAspectRatios).toContain("auto");
    }
  });

  test("says of one model what it says of all", async () => {
    const { json } = await caller.get("/models");
    for (const entry of json.data) {
      expect((await caller.get(`/models/${entry.id}`)).json).toEqual(entry);
    }
  });

  test("one that does not exist is model_not_found", async () => {
    const asked = await caller.get("/models/none");
    expect(refusalOf(asked)).toBe("400 invalid_request_error model_not_found model");
  });
});

describe("what is not for callers", () => {
  ownWorldOnly();

  test("is not shown: inactive models, prompts, upstreams, names and keys there", async () => {
    const asked = await caller.get("/models");
    expect(idsOf(asked)).toContain("scripted");
    expect(idsOf(asked)).not.toContain("inactive");
    const hidden = await caller.get("/models/inactive");
    expect(refusalOf(hidden)).toBe("400 invalid_request_error model_not_found model");
    for (const word of ["OPERATOR", "up-model", "UP_KEY", "up-key", "127.0.0.1", "baseUrl"]) {
      expect(asked.text).not.toContain(word);
    }
    for (const entry of asked.json.data) {
      for (const name of ["developerPrompt", "upstream", "upstreamModel", "apiKeyEnv"]) {
        expect(entry).not.toHaveProperty(name);
      }
    }
  });

  test("is what the key may not use", async () => {
    const bound = await world.withKey(caller, { allowedModels: ["plain", "chat-1"] });
    expect(idsOf(await bound.get("/models")).sort()).toEqual(["chat-1", "plain"]);
    expect((await bound.get("/models/plain")).status).toBe(200);
    const asked = await bound.get("/models/scripted");
    expect(refusalOf(asked)).toBe("400 invalid_request_error model_not_found model");
  });
});

describe("the catalog file", () => {
  ownWorldOnly();

  test("takes a new chat model in within some looks, and lets one go", async () => {
    const body = { model: "brand-new", input: "Hi" };
    world.play();
    expect(refusalOf(await caller.post("/responses", body))).toBe(
      "400 invalid_request_error model_not_found model",
    );
    await world.writeCatalog((usual) => ({
      ...usual,
      models: [
        ...usual.models.filter(({ id }) => id !== "plain"),
        chat("brand-new", { upstreamModel: "up-new" }),
      ],
    }));
    for (let look = 0; look < 4; look++) await world.later(500);
    const isNew = async () => (await caller.post("/responses", body)).status === 200;
    await until("the new model", isNew);
    expect(world.upstream.requests.at(-1)?.body.model).toBe("up-new");
    const isGone = async () => !idsOf(await caller.get("/models")).includes("plain");
    await until("the former model's end", isGone);
  });

  test("that is broken changes nothing, and is told in the log", async () => {
    await world.writeCatalog((usual) => ({ ...usual, models: [chat("broken", { nonsense: 1 })] }));
    await until("the fault in the log", () => world.log.some((line) => line.includes("nonsense")));
    expect(idsOf(await caller.get("/models"))).toContain("scripted");
    await world.writeCatalog((usual) => usual);
    const isBack = async () => idsOf(await caller.get("/models")).includes("plain");
    await until("the good file", isBack);
  });
});
