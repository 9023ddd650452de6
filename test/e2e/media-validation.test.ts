import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "./caller.ts";
import { creditsOf, startMediaWorld, submit } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

let poor: Caller;
beforeAll(async () => {
  if (isOwnWorld) poor = await world.caller({ credits: 3n });
});
// After all refusals the credits are unchanged, and the upstream got no request.
afterAll(async () => {
  if (!isOwnWorld) return;
  const untouched = { available: 3, reserved: 0, spendable: 3, monthSpent: 0 };
  expect(await creditsOf(poor)).toEqual(untouched);
  const { json } = await poor.get("/jobs");
  expect(json).toMatchObject({ object: "list", data: [], has_more: false, nextCursor: null });
});

const input_reference = { file_id: "file_of_nobody" };
const ask = (path: string, body: unknown) => poor.post(path, body);
const prompt = "waves";

/** The refused field or its hint, beside `400 invalid_request_error`. */
type Case = [why: string, body: object, code: string, param: string];

describe("videos", () => {
  const usual = { model: "svc-video-1-5", prompt };
  test.each<Case>([
    ["no model", { prompt }, "missing_required_parameter", "model"],
    ["model is a number", { model: 5, prompt }, "invalid_type", "model"],
    ["unknown model", { model: "video-9", prompt }, "model_not_found", "model"],
    ["unknown modelId", { modelId: "video-9", prompt }, "model_not_found", "modelId"],
    ["a model of another kind", { model: "image-1", prompt }, "model_not_found", "model"],
    ["two models", { ...usual, modelId: "vendory-h3" }, "invalid_value", "modelId"],
    ["no prompt", { model: "svc-video-1-5" }, "missing_required_parameter", "prompt"],
    ["an empty prompt", { ...usual, prompt: "" }, "missing_required_parameter", "prompt"],
    ["a prompt of words", { ...usual, prompt: ["a"] }, "invalid_type", "prompt"],
    ["a long prompt", { ...usual, prompt: "é".repeat(32_001) }, "invalid_value", "prompt"],
    ["seconds as text", { ...usual, seconds: "6" }, "invalid_type", "seconds"],
    ["half a second", { ...usual, durationSeconds: 6.5 }, "invalid_type", "durationSeconds"],
    [
      "two lengths",
      { ...usual, seconds: 6, durationSeconds: 10 },
      "invalid_value",
      "durationSeconds",
    ],
    ["an unknown size", { ...usual, size: "1920x1080" }, "unsupported_size", "size"],
    ["a size as a name", { ...usual, size: "constructor" }, "unsupported_size", "size"],
    [
      "a size beside another resolution",
      { ...usual, size: "854x480", resolution: "720p" },
      "invalid_value",
      "resolution",
    ],
    [
      "a size beside another ratio",
      { ...usual, size: "854x480", aspectRatio: "9:16" },
      "invalid_value",
      "aspectRatio",
    ],
    [
      "a reference as text",
      { ...usual, input_reference: "file_1" },
      "invalid_input_reference",
      "input_reference",
    ],
  ])("%s", async (_, body, code, param) => {
    const answer = await ask("/videos/generations", body);
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} ${param}`);
    expect(Object.keys(answer.json)).toEqual(["error"]);
  });

  const t2v12 = { durationSeconds: 5, resolution: "480p", modes: ["t2v"], credits: 125 };
  test.each<[...Case, rows: number, first: object]>([
    [
      "a mode that the model lacks",
      { model: "text-only", prompt, seconds: 99, input_reference },
      "unsupported_mode",
      "input_reference",
      ...[1, { durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 10 }],
    ] as [...Case, number, object],
    [
      "a duration of the other mode alone",
      { model: "svcalt-video-1-5", prompt, seconds: 12, resolution: "9p", aspectRatio: "1:1" },
      ...["unsupported_duration", "seconds"],
      ...[4, t2v12],
    ] as [...Case, number, object],
    [
      "a resolution of the other mode alone",
      { model: "svcalt-video-1-5", prompt, seconds: 5, resolution: "480p", input_reference },
      ...["unsupported_resolution", "resolution"],
      ...[3, { durationSeconds: 5, resolution: "720p", modes: ["t2v", "i2v"], credits: 250 }],
    ] as [...Case, number, object],
    [
      "a size whose resolution the model lacks",
      { model: "vendory-h3", prompt, size: "1280x720" },
      ...["unsupported_resolution", "size"],
      ...[6, { durationSeconds: 6, resolution: "480p", modes: ["t2v", "i2v"], credits: 300 }],
    ] as [...Case, number, object],
  ])("%s lists what there is", async (_, body, code, param, rows, first) => {
    const { json, ...answer } = await ask("/videos/generations", body);
    expect(refusalOf({ ...answer, json })).toBe(`400 invalid_request_error ${code} ${param}`);
    expect(Object.keys(json)).toEqual(["error"]);
    expect(json.error.availableOptions).toHaveLength(rows);
    expect(json.error.availableOptions[0]).toEqual(first);
    expect(json.error.availableAspectRatios).toBeUndefined();
  });

  test("a ratio that the model lacks lists those it has", async () => {
    const body = { model: "svcalt-video-1-4", prompt, aspectRatio: "21:9" };
    const { json, ...answer } = await ask("/videos/generations", body);
    expect(refusalOf({ ...answer, json })).toBe(
      "400 invalid_request_error unsupported_aspect_ratio aspectRatio",
    );
    expect(json.error.availableAspectRatios).toEqual(["auto", "16:9", "9:16", "1:1"]);
    expect(Object.keys(json)).toEqual(["error"]);
  });

  test.each([
    ["one too many", "svcalt-video-1-5", { seconds: 5, resolution: "720p" }, 2, "referenceFileIds"],
    ["the same thrice", "vendory-h3", {}, 3, "referenceFileIds"],
    ["eight", "svc-video-1-5", {}, 8, "referenceFileIds"],
  ])("references: %s", async (_, model, shape, count, param) => {
    const referenceFileIds = Array<string>(count - 1).fill("file_of_nobody");
    const body = { model, prompt, ...shape, input_reference, referenceFileIds };
    const { json, ...answer } = await ask("/videos/generations", body);
    expect(refusalOf({ ...answer, json })).toBe(
      `400 invalid_request_error too_many_references ${param}`,
    );
    const listed = (await poor.get(`/models/${model}`)).json.videoOptions;
    expect(json.error.availableOptions).toEqual(
      listed.filter(({ modes }: { modes: string[] }) => modes.includes("i2v")),
    );
  });

  test.each([
    ["svc-video-1-5", "854x480", "480p", "16:9", 45],
    ["svc-video-1-5", "480x854", "480p", "9:16", 45],
    ["svc-video-1-5", "480x480", "480p", "1:1", 45],
    ["svc-video-1-5", "1280x720", "720p", "16:9", 90],
    ["svc-video-1-5", "720x1280", "720p", "9:16", 90],
    ["svc-video-1-5", "720x720", "720p", "1:1", 90],
    ["svcalt-video-1-5", "480x480", "480p", "16:9", 125],
    ["vendory-h3", "480x854", "480p", "9:16", 300],
  ])("%s with size %s is %s, %s for %d", async (model, size, resolution, aspectRatio, credits) => {
    const caller = await world.caller({ credits: BigInt(credits) });
    const job = await submit(caller, "videos", { model, prompt, size });
    expect(job).toMatchObject({ resolution, aspectRatio, creditsReserved: credits, mode: "t2v" });
  });

  test.each([
    [{}, { durationSeconds: 6, resolution: "480p", aspectRatio: "auto", creditsReserved: 45 }],
    [{ seconds: 10 }, { durationSeconds: 10, resolution: "480p", creditsReserved: 68 }],
    [{ resolution: "1080p" }, { durationSeconds: 6, creditsReserved: 180 }],
    [
      { seconds: 15, durationSeconds: 15 },
      { durationSeconds: 15, creditsReserved: 113 },
    ],
    [
      { modelId: "svc-video-1-5", aspectRatio: "3:2" },
      { aspectRatio: "3:2", creditsReserved: 45 },
    ],
    [{ size: "854x480", resolution: "480p", aspectRatio: "auto" }, { aspectRatio: "16:9" }],
    [{ seconds: null, size: null, input_reference: null, style: "noir" }, { creditsReserved: 45 }],
  ])("%j is filled up", async (sent, want) => {
    const caller = await world.caller({ credits: 200n });
    expect(await submit(caller, "videos", { ...usual, ...sent })).toMatchObject(want);
  });
});

describe("images", () => {
  const usual = { model: "image-1", prompt };
  test.each<Case>([
    ["no model", { prompt }, "missing_required_parameter", "model"],
    ["a video model", { model: "svc-video-1-5", prompt }, "model_not_found", "model"],
    ["no prompt", { model: "image-1" }, "missing_required_parameter", "prompt"],
    ["none", { ...usual, n: 0 }, "invalid_value", "n"],
    ["eleven", { ...usual, n: 11 }, "invalid_value", "n"],
    ["one and a half", { ...usual, n: 1.5 }, "invalid_type", "n"],
    ["n as text", { ...usual, n: "1" }, "invalid_type", "n"],
    ["an unknown size", { ...usual, size: "1x1" }, "unsupported_size", "size"],
    [
      "an unknown resolution",
      { ...usual, resolution: "8k" },
      "unsupported_resolution",
      "resolution",
    ],
    [
      "an unknown ratio",
      { ...usual, aspectRatio: "7:3" },
      "unsupported_aspect_ratio",
      "aspectRatio",
    ],
    [
      "a ratio against the size",
      { ...usual, size: "1024x1024", aspectRatio: "16:9" },
      "invalid_value",
      "aspectRatio",
    ],
    ["files as text", { ...usual, referenceFileIds: "file_1" }, "invalid_type", "referenceFileIds"],
    [
      "a file as a number",
      { ...usual, referenceFileIds: ["a", 5] },
      "invalid_type",
      "referenceFileIds[1]",
    ],
  ])("%s", async (_, body, code, param) => {
    const answer = await ask("/images/generations", body);
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} ${param}`);
  });
});

describe("music", () => {
  const usual = { model: "music-1", mode: "instrumental", title: "Tides" };
  test.each<Case>([
    ["no mode", { ...usual, mode: undefined }, "missing_required_parameter", "mode"],
    ["another mode", { ...usual, mode: "opera" }, "invalid_value", "mode"],
    ["no title", { ...usual, title: undefined }, "missing_required_parameter", "title"],
    ["an empty title", { ...usual, title: "" }, "missing_required_parameter", "title"],
    ["no lyrics to sing", { ...usual, mode: "lyrics" }, "missing_required_parameter", "lyrics"],
    [
      "empty lyrics",
      { ...usual, mode: "lyrics", lyrics: "" },
      "missing_required_parameter",
      "lyrics",
    ],
    ["lyrics of no use", { ...usual, lyrics: "la" }, "invalid_value", "lyrics"],
    ["a description of parts", { ...usual, description: [] }, "invalid_type", "description"],
    ["an unknown model", { ...usual, model: "music-9" }, "model_not_found", "model"],
  ])("%s", async (_, body, code, param) => {
    const answer = await ask("/music/generations", body);
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} ${param}`);
  });
});

describe.each(["images", "videos", "music"])("the body of %s", (area) => {
  const path = `/${area}/generations`;
  test.each(["{", "[]", '"text"', "null", ""])("%j is no JSON object", async (body) => {
    expect(refusalOf(await ask(path, body))).toBe("400 invalid_request_error invalid_json null");
  });

  test("is JSON, within its size, and sent by POST", async () => {
    const plain = await poor.post(path, "{}", { headers: { "content-type": "text/plain" } });
    expect(refusalOf(plain)).toBe("415 invalid_request_error unsupported_media_type null");
    const most = (area === "music" ? 1 : 32) * 1024 * 1024;
    const large = await ask(path, `{"prompt":"${"x".repeat(most)}"}`);
    expect(refusalOf(large)).toBe("413 invalid_request_error payload_too_large null");
    const got = await poor.get(path);
    expect(refusalOf(got)).toBe("405 invalid_request_error method_not_allowed null");
    expect(got.headers.get("allow")).toBe("POST");
  });
});
