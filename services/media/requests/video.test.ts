import { readFileSync } from "node:fs";
import { clone } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { ErrorReason, type RefusalError } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { SnapshotSchema, VideoMode } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { parseCatalog } from "../../catalog/parse.ts";
import { checkRequest } from "./index.ts";

const file = new URL("../../../deploy/catalog.yaml", import.meta.url);
const { snapshot } = parseCatalog(readFileSync(file, "utf8"));
if (!snapshot) throw new Error("the shipped catalog is broken");
const view = viewOf(snapshot);

/** Credits by `seconds resolution`, copied from the API's price table, for t2v and i2v where they differ. */
const h3 = {
  "6 480p": 300,
  "6 768p": 600,
  "10 480p": 500,
  "10 768p": 1000,
  "15 480p": 750,
  "15 768p": 1500,
};
const prices: Record<string, Record<string, number | { t2v?: number; i2v?: number }>> = {
  "svc-video-1-5": {
    "6 480p": 45,
    "6 720p": 90,
    "6 1080p": 180,
    "10 480p": 68,
    "10 720p": 135,
    "10 1080p": 270,
    "15 480p": 113,
    "15 720p": 225,
    "15 1080p": 450,
  },
  "svcalt-video-1-4": { "5 480p": 120, "5 720p": 225, "10 480p": 225, "10 720p": 450 },
  "svcalt-video-1-5": {
    "5 480p": { t2v: 125 },
    "5 720p": 250,
    "8 480p": { t2v: 200 },
    "8 720p": 400,
    "12 720p": { i2v: 550 },
  },
  "svcalt-video-1-5b": {
    "5 480p": { t2v: 300, i2v: 250 },
    "5 720p": { t2v: 225, i2v: 500 },
    "5 1080p": { i2v: 750 },
    "8 480p": 400,
    "8 720p": { t2v: 360, i2v: 800 },
    "8 1080p": { i2v: 1200 },
    "12 720p": { t2v: 540 },
  },
  "vendorx-2-0-mini": {
    "6 480p": 165,
    "6 720p": 165,
    "10 480p": 275,
    "10 720p": 275,
    "15 480p": 413,
    "15 720p": 413,
  },
  "vendory-h3": h3,
  "vendory-h3-spicy": h3,
  "vendory-h3-turbo": {
    "6 480p": 360,
    "6 768p": 360,
    "10 480p": 600,
    "10 768p": 600,
    "15 480p": 900,
    "15 768p": 900,
  },
};
const maxReferences: Record<string, number> = {
  "svc-video-1-5": 7,
  "svcalt-video-1-4": 1,
  "svcalt-video-1-5": 1,
  "svcalt-video-1-5b": 1,
  "vendorx-2-0-mini": 2,
  "vendory-h3": 2,
  "vendory-h3-spicy": 2,
  "vendory-h3-turbo": 2,
};
const allSeconds = [1, 5, 6, 8, 10, 12, 15, 20];
const allResolutions = ["360p", "480p", "720p", "768p", "1080p"];
const models = Object.keys(prices);

function check(body: JsonObject, catalog = view) {
  return checkRequest("video", { prompt: "waves", ...body }, catalog, {});
}

function refusal(body: JsonObject, catalog = view): RefusalError {
  try {
    check(body, catalog);
  } catch (error) {
    return error as RefusalError;
  }
  throw new Error(`accepted: ${JSON.stringify(body)}`);
}

function files(count: number): JsonObject {
  return count === 0
    ? {}
    : { referenceFileIds: Array.from({ length: count }, (_, i) => `file_${i}`) };
}

function videoOf(body: JsonObject) {
  const { request } = check(body).spec;
  if (request.kind !== "video") throw new TypeError("no video");
  return request;
}

describe("every combination of the eight models", () => {
  const modes = ["t2v", "i2v"] as const;
  const cases = models.flatMap((model) => modes.map((mode) => [model, mode] as const));

  test.each(cases)("%s, %s", (model, mode) => {
    const references = files(mode === "i2v" ? 1 : 0);
    let offered = 0;
    for (const seconds of allSeconds) {
      for (const resolution of allResolutions) {
        const price = prices[model]?.[`${seconds} ${resolution}`];
        const credits = typeof price === "object" ? price[mode] : price;
        const body = { model, seconds, resolution, ...references };
        if (credits === undefined) {
          const { reason, metadata } = refusal(body);
          const durations = Object.entries(prices[model] ?? {})
            .filter(([, one]) => typeof one === "number" || one[mode] !== undefined)
            .map(([row]) => Number(row.split(" ")[0]));
          expect(reason).toBe(
            durations.includes(seconds)
              ? ErrorReason.UNSUPPORTED_RESOLUTION
              : ErrorReason.UNSUPPORTED_DURATION,
          );
          const rows = JSON.parse(metadata.available_options ?? "[]") as JsonObject[];
          expect(rows.length).toBe(durations.length);
          expect(rows.every(({ modes }) => (modes as string[]).includes(mode))).toBe(true);
        } else {
          offered++;
          const { spec } = check(body);
          expect(spec.price).toBe(BigInt(credits));
          expect(spec).toMatchObject({ model, mode });
          expect(spec.request).toMatchObject({ durationSeconds: seconds, resolution, mode });
        }
      }
    }
    expect(offered).toBeGreaterThan(2);
  });

  test.each(models)("%s: as many references as it takes, and not one more", (model) => {
    const most = maxReferences[model] ?? 0;
    expect(check({ model, ...files(most) }).references).toHaveLength(most);
    const { reason, metadata, param } = refusal({ model, ...files(most + 1) });
    expect({ reason, param }).toEqual({
      reason: ErrorReason.TOO_MANY_REFERENCES,
      param: "referenceFileIds",
    });
    expect(metadata.max_references).toBe(String(most));
    const rows = JSON.parse(metadata.available_options ?? "[]") as JsonObject[];
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.every(({ modes }) => (modes as string[]).includes("i2v"))).toBe(true);
  });

  test.each(models)("%s: its ratios, and no other", (model) => {
    const spec = view.findModel(model).spec;
    const ratios = spec.case === "video" ? spec.value.aspectRatios : [];
    for (const aspectRatio of ratios)
      expect(videoOf({ model, aspectRatio }).aspectRatio).toBe(aspectRatio);
    const { reason, metadata, param } = refusal({ model, aspectRatio: "5:4" });
    expect({ reason, param }).toEqual({
      reason: ErrorReason.UNSUPPORTED_ASPECT_RATIO,
      param: "aspectRatio",
    });
    expect(JSON.parse(metadata.available_aspect_ratios ?? "")).toEqual(ratios);
  });
});

describe("what is left out", () => {
  test.each([
    [{ model: "svc-video-1-5" }, 6, "480p"],
    [{ model: "svc-video-1-5", seconds: 10 }, 10, "480p"],
    [{ model: "svc-video-1-5", resolution: "1080p" }, 6, "1080p"],
    [{ model: "svcalt-video-1-5", referenceFileIds: ["file_a"] }, 5, "720p"],
    [{ model: "svcalt-video-1-5b", resolution: "1080p", referenceFileIds: ["file_a"] }, 5, "1080p"],
    [{ model: "svcalt-video-1-5b", seconds: 12 }, 12, "720p"],
    [{ model: "svcalt-video-1-5b", size: "1280x720" }, 5, "720p"],
  ])("%j is filled in by the first row that fits", (body, durationSeconds, resolution) => {
    expect(videoOf(body)).toMatchObject({ durationSeconds, resolution });
  });

  test("the ratio is auto, and inactive rows are passed over", () => {
    expect(videoOf({ model: "svc-video-1-5" }).aspectRatio).toBe("auto");
    const changed = clone(SnapshotSchema, snapshot);
    const model = changed.models.find(({ id }) => id === "svc-video-1-5");
    if (model?.spec.case !== "video") throw new Error("no such model");
    for (const row of model.spec.value.options.slice(0, 3)) row.active = false;
    const { spec } = check({ model: "svc-video-1-5" }, viewOf(changed));
    expect(spec.request).toMatchObject({ durationSeconds: 10, resolution: "480p" });
    const gone = refusal({ model: "svc-video-1-5", seconds: 6 }, viewOf(changed));
    expect(gone.reason).toBe(ErrorReason.UNSUPPORTED_DURATION);
  });

  test("a mode without a row is refused before anything else, with the rows of the other", () => {
    const changed = clone(SnapshotSchema, snapshot);
    const model = changed.models.find(({ id }) => id === "svcalt-video-1-4");
    if (model?.spec.case !== "video") throw new Error("no such model");
    for (const row of model.spec.value.options) row.modes = [VideoMode.T2V];
    const body = { model: "svcalt-video-1-4", seconds: 99, ...files(3) };
    const { reason, param, metadata } = refusal(body, viewOf(changed));
    expect({ reason, param }).toEqual({
      reason: ErrorReason.UNSUPPORTED_MODE,
      param: "referenceFileIds",
    });
    expect(JSON.parse(metadata.available_options ?? "")).toHaveLength(4);
  });
});

describe("sizes", () => {
  test.each([
    ["svc-video-1-5", "854x480", "480p", "16:9"],
    ["svc-video-1-5", "480x854", "480p", "9:16"],
    ["svc-video-1-5", "480x480", "480p", "1:1"],
    ["svc-video-1-5", "1280x720", "720p", "16:9"],
    ["svc-video-1-5", "720x1280", "720p", "9:16"],
    ["svc-video-1-5", "720x720", "720p", "1:1"],
    // It has no square. Both others are equally far, and the earlier one counts.
    ["svcalt-video-1-5", "720x720", "720p", "16:9"],
    ["vendory-h3", "480x854", "480p", "9:16"],
  ])("%s %s is %s in %s", (model, size, resolution, aspectRatio) => {
    expect(videoOf({ model, size })).toMatchObject({ resolution, aspectRatio });
  });

  test.each([
    [{ size: "1920x1080" }, ErrorReason.UNSUPPORTED_SIZE, "size"],
    [{ size: "toString" }, ErrorReason.UNSUPPORTED_SIZE, "size"],
    [{ size: "854x480", resolution: "720p" }, ErrorReason.INVALID_VALUE, "resolution"],
    [{ size: "854x480", aspectRatio: "1:1" }, ErrorReason.INVALID_VALUE, "aspectRatio"],
    [{ model: "vendory-h3", size: "720x720" }, ErrorReason.UNSUPPORTED_RESOLUTION, "size"],
  ])("%j is refused", (more, reason, param) => {
    expect(refusal({ model: "svc-video-1-5", ...more })).toMatchObject({ reason, param });
  });

  test("what says the same twice is taken", () => {
    const body = { size: "854x480", resolution: "480p", aspectRatio: "16:9" };
    expect(videoOf({ model: "svc-video-1-5", ...body })).toMatchObject({ resolution: "480p" });
  });
});

describe("fields", () => {
  test("both spellings are taken where they agree", () => {
    const body = {
      model: "svc-video-1-5",
      modelId: "svc-video-1-5",
      seconds: 6,
      durationSeconds: 6,
    };
    expect(videoOf(body).durationSeconds).toBe(6);
    expect(videoOf({ modelId: "svc-video-1-5", durationSeconds: 15 }).durationSeconds).toBe(15);
  });

  test.each([
    [{}, ErrorReason.MISSING_REQUIRED_PARAMETER, "model"],
    [{ model: "a", modelId: "b" }, ErrorReason.INVALID_VALUE, "modelId"],
    [{ model: "none" }, ErrorReason.MODEL_NOT_FOUND, "model"],
    [{ modelId: "none" }, ErrorReason.MODEL_NOT_FOUND, "modelId"],
    [{ model: "image-1" }, ErrorReason.MODEL_NOT_FOUND, "model"],
    [{ model: 5 }, ErrorReason.INVALID_TYPE, "model"],
    [{ model: "svc-video-1-5", prompt: "" }, ErrorReason.MISSING_REQUIRED_PARAMETER, "prompt"],
    [{ model: "svc-video-1-5", prompt: "x".repeat(32_001) }, ErrorReason.INVALID_VALUE, "prompt"],
    [{ model: "svc-video-1-5", seconds: "6" }, ErrorReason.INVALID_TYPE, "seconds"],
    [{ model: "svc-video-1-5", seconds: 6.5 }, ErrorReason.INVALID_TYPE, "seconds"],
    [
      { model: "svc-video-1-5", seconds: 6, durationSeconds: 10 },
      ErrorReason.INVALID_VALUE,
      "durationSeconds",
    ],
    [
      { model: "svc-video-1-5", durationSeconds: 7 },
      ErrorReason.UNSUPPORTED_DURATION,
      "durationSeconds",
    ],
    [{ model: "svc-video-1-5", aspectRatio: 1 }, ErrorReason.INVALID_TYPE, "aspectRatio"],
  ])("%j is refused", (body, reason, param) => {
    expect(refusal(body)).toMatchObject({ reason, param });
  });

  test("faults come in the order mode, duration, resolution, ratio, references", () => {
    const all = {
      model: "svc-video-1-5",
      seconds: 7,
      resolution: "2p",
      aspectRatio: "5:4",
      ...files(8),
    };
    const fixes: [JsonObject, ErrorReason][] = [
      [{}, ErrorReason.UNSUPPORTED_DURATION],
      [{ seconds: 6 }, ErrorReason.UNSUPPORTED_RESOLUTION],
      [{ resolution: "480p" }, ErrorReason.UNSUPPORTED_ASPECT_RATIO],
      [{ aspectRatio: "1:1" }, ErrorReason.TOO_MANY_REFERENCES],
    ];
    let body: JsonObject = all;
    for (const [fix, reason] of fixes) {
      body = { ...body, ...fix };
      expect(refusal(body).reason).toBe(reason);
    }
  });

  test("sound and last frame are the model's", () => {
    expect(videoOf({ model: "vendory-h3", ...files(2) })).toMatchObject({
      audio: "stereo",
      firstLastFrame: true,
    });
    expect(videoOf({ model: "vendory-h3", ...files(1) }).firstLastFrame).toBe(false);
    expect(videoOf({ model: "svc-video-1-5", ...files(2) })).toMatchObject({
      audio: "none",
      firstLastFrame: false,
    });
  });
});
