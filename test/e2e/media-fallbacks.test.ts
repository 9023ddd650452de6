import { readFileSync } from "node:fs";
import { afterAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import { falAnswers, startFal } from "../support/upstreams/fal.ts";
import { type CatalogObject, upstreamKeys } from "./catalog.ts";
import { creditsOf, ended, submit } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const first = await startFal({ key: upstreamKeys.UP_KEY });
const second = await startFal({ key: upstreamKeys.BACKUP_KEY });

/** The shipped catalog of fal. Its image model has a second account, and before the usual one another whose key is not set. */
function shipped(): CatalogObject {
  const file = new URL("../../deploy/catalogs/fal.yaml", import.meta.url);
  const { upstreams, models } = parse(readFileSync(file, "utf8")) as CatalogObject;
  const image = models.find(({ id }) => id === "image-1");
  if (!image) throw new Error("no picture model");
  const at = (baseUrl: string, apiKeyEnv: string) => ({ ...upstreams.fal, baseUrl, apiKeyEnv });
  const model = { ...image, fallbackUpstreams: ["second"] };
  return {
    developerPrompt: "",
    upstreams: {
      first: at(first.origin, "UP_KEY"),
      second: at(second.origin, "BACKUP_KEY"),
      keyless: at(first.origin, "NOT_SET_KEY"),
    },
    models: [
      { ...model, upstream: "first" },
      { ...model, id: "keyless", default: false, upstream: "keyless" },
      { ...image, id: "alone", default: false, upstream: "keyless" },
    ],
  };
}
const world = await startWorld({
  catalog: shipped,
  env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});
ownWorldOnly();
beforeEach(async () => {
  if (!isOwnWorld) return;
  // All rests end.
  await world.later(600_000);
  for (const double of [first, second]) {
    double.always("submit", undefined);
    double.lock(false);
    double.requests.length = 0;
    double.generations.length = 0;
    Object.assign(double.usual, { positions: [], running: 0 });
  }
});

const image = { model: "image-1", prompt: "a red boat", size: "1024x1024" };
const paid = () => [first.paid().length, second.paid().length];

test.each([
  ["is locked", () => first.lock()],
  ["has too much to do", () => first.always("submit", falAnswers.tooMany)],
  ["is down", () => first.always("submit", falAnswers.down)],
  ["does not know the key", () => first.always("submit", falAnswers.unauthenticated)],
])(
  "a job goes to the next upstream where the first one %s, and is charged once",
  async (_, make) => {
    make();
    const caller = await world.caller({ credits: 100n });
    const job = await ended(caller, await submit(caller, "images", image));
    expect(job).toMatchObject({ status: "completed", creditsCharged: 5 });
    expect(JSON.stringify(job)).not.toMatch(/second|upstream|"fal"/);
    expect(paid()).toEqual([0, 1]);
    expect(await creditsOf(caller)).toMatchObject({ available: 95, reserved: 0 });
  },
);

test("a key that is not set is no dead end, unless there is no other upstream", async () => {
  const caller = await world.caller({ credits: 100n });
  const job = await ended(caller, await submit(caller, "images", { ...image, model: "keyless" }));
  expect(job).toMatchObject({ status: "completed" });
  expect(paid()).toEqual([0, 1]);
  const alone = await ended(caller, await submit(caller, "images", { ...image, model: "alone" }));
  expect(alone).toMatchObject({ status: "failed", error: { code: "generation_failed" } });
  expect(first.requests).toEqual([]);
  expect(await creditsOf(caller)).toMatchObject({ available: 95, reserved: 0 });
});

test("a job whose answer was lost goes to no other upstream", async () => {
  const caller = await world.caller({ credits: 100n });
  const before = first.seen("submit").length;
  first.next("submit", { kind: "lost" });
  const job = await submit(caller, "images", image);
  expect(await ended(caller, job)).toMatchObject({ status: "completed", creditsCharged: 5 });
  expect(first.seen("submit").length - before).toBe(2);
  expect(second.requests).toEqual([]);
  expect(await creditsOf(caller)).toMatchObject({ available: 95, reserved: 0 });
});
