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
    ["images", imageRoute, picture, { kind: "drop" }],
    ["images", imageRoute, picture, { kind: "status", status: 502 }],
    ["images", imageRoute, picture, { kind: "status", status: 504 }],
    ["videos", videoRoute, film, { kind: "drop" }],
    ["videos", videoRoute, film, { kind: "status", status: 502 }],
  ] as const)("is not paid for twice: %s, %s %j %j", async (area, route, body, behaviour) => {
    const caller = await world.caller({ credits: 20n });
    media.next(route, behaviour);
    const job = await submit(caller, area, body);
    const done = await ended(caller, job);
    expect(done).toMatchObject({ status: "failed", creditsCharged: 0 });
    expect(done.error.code).toBe("generation_failed");
    expect(media.seen(route)).toHaveLength(1);
    expect(await creditsOf(caller)).toMatchObject({ available: 20, reserved: 0 });
  });
});
