import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type Asked, refusalOf } from "./caller.ts";
import { creditsOf, ended, heldImages, startMediaWorld, submit } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const create = "POST /images/generations";
const path = "/images/generations";
const body = { model: "scripted-image", prompt: "a boat" };
const refused = "402 insufficient_quota insufficient_credits null";
beforeEach(() => {
  if (!isOwnWorld) return;
  media.always(create, undefined);
  media.requests.length = 0;
});
const replayed = ({ headers }: Asked) => headers.get("idempotency-replayed");

describe("credits", () => {
  test("two hundred at once on a wallet for twenty: twenty are accepted", async () => {
    const caller = await world.caller({ credits: 20n });
    const held = heldImages(png);
    media.always(create, held.behaviour);
    const all = Array.from({ length: 200 }, () => caller.post(path, body));
    const answers = await Promise.all(all);
    const accepted = answers.filter(({ status }) => status === 202);
    const rest = answers.filter(({ status }) => status !== 202);
    expect([accepted.length, rest.length]).toEqual([20, 180]);
    expect(new Set(rest.map(refusalOf))).toEqual(new Set([refused]));
    expect(rest.every(({ headers }) => headers.get("x-should-retry") === "false")).toBe(true);
    expect(new Set(accepted.map(({ json }) => json.id)).size).toBe(20);
    expect(await creditsOf(caller)).toEqual({
      ...{ available: 20, reserved: 20, spendable: 0, monthSpent: 0 },
    });
    held.open();
    const done = await Promise.all(accepted.map(({ json }) => ended(caller, json)));
    expect(done.map(({ status, creditsCharged }) => `${status} ${creditsCharged}`)).toEqual(
      Array(20).fill("completed 1"),
    );
    expect(media.seen(create)).toHaveLength(20);
    expect(await creditsOf(caller)).toEqual({
      ...{ available: 0, reserved: 0, spendable: 0, monthSpent: 20 },
    });
  });

  test("the price is that of all images, and must be there whole", async () => {
    const caller = await world.caller({ credits: 3n });
    expect(refusalOf(await caller.post(path, { ...body, n: 4 }))).toBe(refused);
    const job = await submit(caller, "images", { ...body, n: 3 });
    expect(job.creditsReserved).toBe(3);
    expect(refusalOf(await caller.post(path, body))).toBe(refused);
    expect(await ended(caller, job)).toMatchObject({ status: "completed", creditsCharged: 3 });
    expect((await ended(caller, job)).images).toHaveLength(3);
  });

  test("dollars buy no job", async () => {
    const caller = await world.caller({ usdMicros: 1_000_000_000n });
    expect(refusalOf(await caller.post(path, body))).toBe(refused);
  });

  test("what fails is given back and can be spent again", async () => {
    const caller = await world.caller({ credits: 1n });
    for (let round = 0; round < 3; round++) {
      media.next(create, { kind: "status", status: 400, code: "content_filter" });
      const done = await ended(caller, await submit(caller, "images", body));
      expect(done).toMatchObject({ status: "failed", creditsCharged: 0 });
    }
    const done = await ended(caller, await submit(caller, "images", body));
    expect(done).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect(await creditsOf(caller)).toMatchObject({ available: 0, reserved: 0, monthSpent: 1 });
  });
});

describe("idempotency", () => {
  test("fifty at once are one job, one hold, one upstream call", async () => {
    const caller = await world.caller({ credits: 100n });
    const held = heldImages(png);
    media.always(create, held.behaviour);
    const all = Array.from({ length: 50 }, () => caller.post(path, body, { idempotencyKey: "k" }));
    const answers = await Promise.all(all);
    expect(answers.every(({ status }) => status === 202)).toBe(true);
    expect(new Set(answers.map(({ json }) => json.id)).size).toBe(1);
    expect(answers.filter((one) => replayed(one) === null)).toHaveLength(1);
    expect(answers.filter((one) => replayed(one) === "true")).toHaveLength(49);
    expect(await creditsOf(caller)).toMatchObject({ reserved: 1, spendable: 99 });
    held.open();
    expect(await ended(caller, answers[0]?.json)).toMatchObject({ status: "completed" });
    expect(media.seen(create)).toHaveLength(1);
    expect(await creditsOf(caller)).toMatchObject({ available: 99, reserved: 0, monthSpent: 1 });

    const late = await caller.post(path, body, { idempotencyKey: "k" });
    expect([late.status, replayed(late)]).toEqual([202, "true"]);
    expect(late.json).toEqual(await ended(caller, answers[0]?.json));
    expect(media.seen(create)).toHaveLength(1);
  });

  test("the same in other words is the same; anything else is 422", async () => {
    const caller = await world.caller({ credits: 10n });
    const first = await submit(caller, "images", body, { idempotencyKey: "k" });
    const spaced = `{ "prompt":"a\\u0020boat",\n "model" : "scripted-image" }`;
    const again = await caller.post(path, spaced, { idempotencyKey: "k" });
    expect([again.status, replayed(again), again.json.id]).toEqual([202, "true", first.id]);
    for (const other of [
      { ...body, n: 1 },
      { ...body, prompt: "a ship" },
      { ...body, note: "!" },
    ]) {
      const answer = await caller.post(path, other, { idempotencyKey: "k" });
      expect(refusalOf(answer)).toBe("422 idempotency_error idempotency_key_reused null");
      expect(answer.headers.get("x-should-retry")).toBe("false");
    }
    expect(await creditsOf(caller)).toMatchObject({ spendable: 9 });
  });

  test("belongs to the key and the route, and outlives a rotation", async () => {
    const caller = await world.caller({ credits: 200n });
    const options = { idempotencyKey: "k" };
    const first = await submit(caller, "images", body, options);
    const sibling = await world.withKey(caller, {});
    expect((await submit(sibling, "images", body, options)).id).not.toBe(first.id);
    const video = await submit(caller, "videos", { model: "text-only", prompt: "x" }, options);
    expect(video.object).toBe("video.job");
    const { secret } = await world.admin.auth.rotateKey({ keyId: caller.keyId });
    const rotated = await world.holding(secret).post(path, body, options);
    expect([rotated.status, replayed(rotated), rotated.json.id]).toEqual([202, "true", first.id]);
  });

  test("a refusal frees the key", async () => {
    const caller = await world.caller();
    const options = { idempotencyKey: "k" };
    expect(refusalOf(await caller.post(path, { ...body, n: 99 }, options))).toMatch(/^400 .* n$/);
    expect(refusalOf(await caller.post(path, body, options))).toBe(refused);
    const { accountId } = caller;
    const grant = { accountId, unit: Unit.CREDITS, amount: 1n, operationId: "more" };
    await world.admin.billing.grant(grant);
    const answer = await caller.post(path, body, options);
    expect([answer.status, replayed(answer)]).toEqual([202, null]);
  });

  test("a failed job stays what its key means", async () => {
    const caller = await world.caller({ credits: 5n });
    media.next(create, { kind: "status", status: 400 });
    const options = { idempotencyKey: "k" };
    const job = await ended(caller, await submit(caller, "images", body, options));
    expect(job.status).toBe("failed");
    const again = await caller.post(path, body, options);
    expect([again.status, replayed(again), again.json]).toEqual([202, "true", job]);
  });

  test("a key of 255 characters is taken, a longer or an empty one is not", async () => {
    const caller = await world.caller({ credits: 5n });
    const most = "k".repeat(255);
    await submit(caller, "images", body, { idempotencyKey: most });
    for (const idempotencyKey of [`${most}k`, ""]) {
      const answer = await caller.post(path, body, { idempotencyKey });
      expect(refusalOf(answer)).toBe(
        "400 invalid_request_error invalid_idempotency_key Idempotency-Key",
      );
    }
    expect(await creditsOf(caller)).toMatchObject({ spendable: 4 });
  });
});
