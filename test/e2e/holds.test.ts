import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { ended, startMediaWorld, submit, threeKeys } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const create = "POST /images/generations";
beforeEach(() => {
  if (!isOwnWorld) return;
  world.play();
  media.always(create, undefined);
});

describe("GET /billing/holds", () => {
  test("shows what is held, for what and since when", async () => {
    const { first, second, all } = await threeKeys(world);
    const gate = Promise.withResolvers<void>();
    media.always(create, {
      kind: "custom",
      async handle(_request, response) {
        await gate.promise;
        response.statusCode = 400;
        response.end("{}");
      },
    });
    const job = await submit(first, "images", { model: "scripted-image", prompt: "x" });
    const { json } = await first.get("/billing/holds");
    const hold = {
      ...{ id: job.id, object: "billing.hold", unit: "credits", amount: 1, kind: "job" },
      ...{ keyId: first.keyId, request: job.id, createdAt: expect.stringMatching(/^20/) },
    };
    expect(json).toEqual({
      ...{ object: "list", data: [hold], has_more: false, hasMore: false, nextCursor: null },
    });
    expect((await all.get("/billing/holds")).json.data).toEqual([hold]);
    expect((await second.get("/billing/holds")).json.data).toEqual([]);
    expect((await (await world.caller()).get("/billing/holds")).json.data).toEqual([]);
    gate.resolve();
    await ended(first, job);
    expect((await first.get("/billing/holds")).json.data).toEqual([]);
  });

  test("gives a key's in pages of the size asked for, texts by their x-request-id", async () => {
    const { first } = await threeKeys(world);
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const calls = [1, 2, 3].map(() =>
      fetch(`${world.baseUrl}/responses`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${first.key}`,
          "content-type": "application/json",
          // Several requests of a caller have this id, so it identifies none of them.
          "x-request-id": "mine",
        },
        body: JSON.stringify({ model: "scripted", input: "Hi" }),
        signal: leaving.signal,
      }).catch(() => {}),
    );
    await until("three holds", async () => {
      return (await first.get("/billing/holds")).json.data.length === 3;
    });
    const page = (await first.get("/billing/holds?limit=2")).json;
    expect(page).toMatchObject({ hasMore: true, nextCursor: expect.any(String) });
    const next = `/billing/holds?limit=2&after=${encodeURIComponent(page.nextCursor)}`;
    const { json: last } = await first.get(next);
    expect([page.data.length, last.data.length, last.hasMore]).toEqual([2, 1, false]);
    const requests = [...page.data, ...last.data].map(({ request }) => request);
    expect(requests).toEqual(Array(3).fill(expect.stringMatching(/^req_/)));
    expect(new Set(requests).size).toBe(3);
    leaving.abort();
    await Promise.all(calls);
  });
});
