import { afterAll, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { ended, startMediaWorld, submit } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

const sized = { kind: "image", creditPrice: 1, upstream: "scripted" };
const { world, media, ...rest } = await startMediaWorld({
  models: [
    { ...sized, id: "sized", sizes: ["1024x1024", "1792x1024", "1024x1792", "1200x800"] },
    { ...sized, id: "square", sizes: ["64x64"] },
    { ...sized, id: "listed", sizes: ["64x64", "96x64"], availableAspectRatios: ["1:1"] },
  ],
});
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const caller = await world.caller({ credits: 1_000n });
const path = "/images/generations";
const usual = { prompt: "a boat" };

test.each([
  ["sized", "16:9", "1792x1024"],
  ["sized", "9:16", "1024x1792"],
  ["sized", "3:2", "1200x800"],
  ["sized", "2:3", "1024x1792"],
  ["sized", "1:1", "1024x1024"],
  ["square", "16:9", "64x64"],
])("%s takes the ratio %s as its closest size", async (model, aspectRatio, size) => {
  for (const more of [{}, { size: "auto" }]) {
    media.requests.length = 0;
    await ended(caller, await submit(caller, "images", { model, ...usual, aspectRatio, ...more }));
    expect(media.seen("POST /images/generations")[0]?.body.size).toBe(size);
  }
});

test("a size beside its own ratio is taken, beside another one refused", async () => {
  media.requests.length = 0;
  const body = { model: "sized", ...usual, size: "1792x1024" };
  await ended(caller, await submit(caller, "images", { ...body, aspectRatio: "16:9" }));
  expect(media.seen("POST /images/generations")[0]?.body.size).toBe("1792x1024");
  const answer = await caller.post(path, { ...body, aspectRatio: "1:1" });
  expect(refusalOf(answer)).toBe("400 invalid_request_error invalid_value aspectRatio");
});

test("auto leaves the size to the model, and other ratios are refused", async () => {
  const auto = await submit(caller, "images", { model: "sized", ...usual, aspectRatio: "auto" });
  await ended(caller, auto);
  const ratios = ["auto", "16:9", "9:16", "3:2", "2:3", "1:1"];
  const answer = await caller.post(path, { model: "sized", ...usual, aspectRatio: "4:3" });
  expect(refusalOf(answer)).toBe("400 invalid_request_error unsupported_aspect_ratio aspectRatio");
  expect(answer.json.error.availableAspectRatios).toEqual(ratios);
  expect((await caller.get("/models/sized")).json.availableAspectRatios).toEqual(ratios);
});

test("a model that lists ratios takes those alone", async () => {
  const answer = await caller.post(path, { model: "listed", ...usual, aspectRatio: "3:2" });
  expect(refusalOf(answer)).toBe("400 invalid_request_error unsupported_aspect_ratio aspectRatio");
  expect(answer.json.error.availableAspectRatios).toEqual(["1:1"]);
});
