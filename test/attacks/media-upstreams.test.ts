import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { creditsOf, ended, startMediaWorld, submit } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";
import { until } from "../support/until.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();
beforeEach(() => {
  if (isOwnWorld) media.requests.length = 0;
});

const picture = { model: "scripted-image", prompt: "a boat" };
const film = { model: "text-only", prompt: "waves", seconds: 6, resolution: "480p" };
const [imageRoute, videoRoute] = ["POST /images/generations", "POST /videos"];

describe("an upstream that takes nothing", () => {
  test.each([
    ["429", { kind: "status", status: 429, headers: { "retry-after": "0" } }],
    ["503", { kind: "status", status: 503, headers: { "retry-after": "0" } }],
  ] as const)("with %s is waited out, more often than a job has attempts", async (_, busy) => {
    const caller = await world.caller({ credits: 5n });
    media.always(imageRoute, busy);
    const job = await submit(caller, "images", picture);
    for (let asked = 1; asked <= 5; asked++) {
      await until(`request ${asked}`, () => media.seen(imageRoute).length >= asked, {
        withinMs: 60_000,
      });
      await until("the queue", async () => {
        const { json } = await caller.get(`/images/generations/${job.id}`);
        expect(json.terminal).toBe(false);
        return json.status === "queued";
      });
      expect(await creditsOf(caller)).toMatchObject({ available: 5, reserved: 1 });
      if (asked === 5) media.always(imageRoute, undefined);
      await world.later(300_000);
    }
    const done = await ended(caller, job);
    expect(done).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect(await creditsOf(caller)).toMatchObject({ available: 4, reserved: 0 });
  });
});

describe("a generation whose answer is lost", () => {
  test.each([
    ["drop", { kind: "drop" }],
    ["502", { kind: "status", status: 502 }],
    ["504", { kind: "status", status: 504 }],
  ] as const)("is asked for again, and charged once: a picture, %s", async (_, behaviour) => {
    const caller = await world.caller({ credits: 20n });
    media.next(imageRoute, behaviour);
    const done = await ended(caller, await submit(caller, "images", picture));
    expect(done).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect(media.seen(imageRoute)).toHaveLength(2);
    expect(await creditsOf(caller)).toMatchObject({ available: 19, reserved: 0 });
  });

  test("is asked for three times at most, and costs nothing then: a picture", async () => {
    const caller = await world.caller({ credits: 20n });
    media.always(imageRoute, { kind: "drop" });
    const done = await ended(caller, await submit(caller, "images", picture));
    media.always(imageRoute, undefined);
    expect(done).toMatchObject({ status: "failed", creditsCharged: 0 });
    expect(done.error.code).toBe("generation_failed");
    expect(media.seen(imageRoute)).toHaveLength(3);
    expect(await creditsOf(caller)).toMatchObject({ available: 20, reserved: 0 });
  });

  test.each([
    ["drop", { kind: "drop" }],
    ["502", { kind: "status", status: 502 }],
  ] as const)("is not paid for twice: a film, %s", async (_, behaviour) => {
    const caller = await world.caller({ credits: 20n });
    media.next(videoRoute, behaviour);
    const done = await ended(caller, await submit(caller, "videos", film));
    expect(done).toMatchObject({ status: "failed", creditsCharged: 0 });
    expect(done.error.code).toBe("generation_failed");
    expect(media.seen(videoRoute)).toHaveLength(1);
    expect(await creditsOf(caller)).toMatchObject({ available: 20, reserved: 0 });
  });
});
