import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { creditsOf, ended, heldImages, startMediaWorld, submit } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";
import { until } from "../support/until.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();
beforeEach(() => {
  if (isOwnWorld) media.requests.length = 0;
});

const picture = { model: "scripted-image", prompt: "a boat" };
const route = "POST /images/generations";

describe("a caller who wants more than is paid for", () => {
  test("by many jobs of several images at once is held to the credits that are there", async () => {
    const caller = await world.caller({ credits: 20n });
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        caller.post("/images/generations", { ...picture, n: (i % 10) + 1 }),
      ),
    );
    const accepted = answers.filter(({ status }) => status === 202).map(({ json }) => json);
    const refused = answers.filter(({ status }) => status === 402);
    expect(accepted.length + refused.length).toBe(30);
    const held = accepted.reduce((sum, job) => sum + job.creditsReserved, 0);
    expect(held).toBeLessThanOrEqual(20);
    const done = await Promise.all(accepted.map((job) => ended(caller, job)));
    const images = done.reduce((sum, job) => sum + job.images.length, 0);
    expect(images).toBe(held);
    const made = media.seen(route).reduce((sum, { body }) => sum + body.n, 0);
    expect(made).toBe(held);
    expect(await creditsOf(caller)).toMatchObject({ available: 20 - held, reserved: 0 });
  });

  test("by one idempotency key for different bodies, kinds and keys at once gets what each is", async () => {
    const caller = await world.caller({ credits: 1_000n });
    const sibling = await world.withKey(caller, {});
    const options = { idempotencyKey: "one-key" };
    const bodies = [picture, { ...picture, n: 10 }, { ...picture, prompt: "another" }];
    const answers = await Promise.all(
      bodies.flatMap((body) =>
        [1, 2, 3].map(() => caller.post("/images/generations", body, options)),
      ),
    );
    const jobs = answers.filter(({ status }) => status === 202);
    expect(new Set(jobs.map(({ json }) => json.id)).size).toBe(1);
    expect(jobs).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 422)).toHaveLength(6);
    const theirs = await submit(sibling, "images", picture, options);
    const song = { model: "music-1", mode: "instrumental", title: "A boat" };
    const music = await submit(caller, "music", song, options);
    const ids = [jobs[0]?.json.id, theirs.id, music.id];
    expect(new Set(ids).size).toBe(3);
    await ended(caller, jobs[0]?.json);
    await ended(sibling, theirs);
    await ended(caller, music);
    expect(media.seen(route)).toHaveLength(2);
  });

  test("by a catalog that changes meanwhile pays the price of acceptance, and gets the job", async () => {
    const caller = await world.caller({ credits: 100n });
    const gate = heldImages(png);
    media.next(route, gate.behaviour);
    const job = await submit(caller, "images", { ...picture, n: 2 });
    await until("the request", () => media.seen(route).length === 1);
    await world.writeCatalog((usual) => ({
      ...usual,
      models: usual.models.filter(({ kind }) => kind === "chat"),
    }));
    await until("the new catalog", async () => {
      const { text } = await caller.get("/models");
      return !text.includes(picture.model);
    });
    gate.open();
    expect(await ended(caller, job)).toMatchObject({ status: "completed", creditsCharged: 2 });
    expect(await creditsOf(caller)).toMatchObject({ available: 98, reserved: 0 });
  });
});
