import { afterAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import {
  creditsOf,
  download,
  ended,
  heldImages,
  pathOf,
  startMediaWorld,
  submit,
} from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

const { world, media, png, ...owned } = await startMediaWorld();
afterAll(() => owned[Symbol.asyncDispose]());
ownWorldOnly();

test("a suspended account's job ends, is charged and can be fetched; it cannot be cancelled, nor another one made", async () => {
  const caller = await world.caller({ credits: 10n });
  const { accountId } = caller;
  const held = heldImages(png);
  media.next("POST /images/generations", held.behaviour);
  const body = { model: "scripted-image", prompt: "a boat" };
  const job = await submit(caller, "images", body);
  await until("the job to run", async () => {
    const { json } = await caller.get(pathOf(caller, job.statusUrl));
    return json.status === "running";
  });
  await world.admin.auth.setAccountState({ accountId, suspended: true });
  const suspended = "403 permission_error account_suspended null";
  await until(
    "the suspension",
    async () => refusalOf(await caller.post("/images/generations", "{")) === suspended,
    { withinMs: 60_000 },
  );
  expect(refusalOf(await caller.post(`/images/generations/${job.id}/cancel`, {}))).toBe(suspended);
  expect(await creditsOf(caller)).toMatchObject({ available: 10, reserved: 1, monthSpent: 0 });
  held.open();
  const done = await ended(caller, job);
  expect(done).toMatchObject({ status: "completed", creditsCharged: 1 });
  expect(await creditsOf(caller)).toMatchObject({ available: 9, reserved: 0, monthSpent: 1 });
  const file = await download(caller, done.images[0].url);
  expect(file.bytes).toEqual(png);
});
