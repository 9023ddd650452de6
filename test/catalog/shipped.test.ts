import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { ModelKind, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { toCatalogEntry } from "../../gateway/models.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";

// The tables of the API specification. They are transcribed from it, not from the catalog.

/** Model | seconds | resolution | modes | credits. "and" means two rows. */
const priceTable = `
svc-video-1-5 | 6 | 480p | T2V, I2V | 45
svc-video-1-5 | 6 | 720p | T2V, I2V | 90
svc-video-1-5 | 6 | 1080p | T2V, I2V | 180
svc-video-1-5 | 10 | 480p | T2V, I2V | 68
svc-video-1-5 | 10 | 720p | T2V, I2V | 135
svc-video-1-5 | 10 | 1080p | T2V, I2V | 270
svc-video-1-5 | 15 | 480p | T2V, I2V | 113
svc-video-1-5 | 15 | 720p | T2V, I2V | 225
svc-video-1-5 | 15 | 1080p | T2V, I2V | 450
svcalt-video-1-4 | 5 | 480p | T2V, I2V | 120
svcalt-video-1-4 | 5 | 720p | T2V, I2V | 225
svcalt-video-1-4 | 10 | 480p | T2V, I2V | 225
svcalt-video-1-4 | 10 | 720p | T2V, I2V | 450
svcalt-video-1-5 | 5 | 480p | T2V | 125
svcalt-video-1-5 | 5 | 720p | T2V, I2V | 250
svcalt-video-1-5 | 8 | 480p | T2V | 200
svcalt-video-1-5 | 8 | 720p | T2V, I2V | 400
svcalt-video-1-5 | 12 | 720p | I2V | 550
svcalt-video-1-5b | 5 | 480p | T2V | 300
svcalt-video-1-5b | 5 | 480p | I2V | 250
svcalt-video-1-5b | 5 | 720p | T2V | 225
svcalt-video-1-5b | 5 | 720p | I2V | 500
svcalt-video-1-5b | 5 | 1080p | I2V | 750
svcalt-video-1-5b | 8 | 480p | T2V | 400
svcalt-video-1-5b | 8 | 480p | I2V | 400
svcalt-video-1-5b | 8 | 720p | T2V | 360
svcalt-video-1-5b | 8 | 720p | I2V | 800
svcalt-video-1-5b | 8 | 1080p | I2V | 1200
svcalt-video-1-5b | 12 | 720p | T2V | 540
vendorx-2-0-mini | 6 | 480p and 720p | T2V, I2V | 165 each
vendorx-2-0-mini | 10 | 480p and 720p | T2V, I2V | 275 each
vendorx-2-0-mini | 15 | 480p and 720p | T2V, I2V | 413 each
vendory-h3 | 6 | 480p | T2V, I2V | 300
vendory-h3 | 6 | 768p | T2V, I2V | 600
vendory-h3 | 10 | 480p | T2V, I2V | 500
vendory-h3 | 10 | 768p | T2V, I2V | 1000
vendory-h3 | 15 | 480p | T2V, I2V | 750
vendory-h3 | 15 | 768p | T2V, I2V | 1500
vendory-h3-spicy | 6 | 480p | T2V, I2V | 300
vendory-h3-spicy | 6 | 768p | T2V, I2V | 600
vendory-h3-spicy | 10 | 480p | T2V, I2V | 500
vendory-h3-spicy | 10 | 768p | T2V, I2V | 1000
vendory-h3-spicy | 15 | 480p | T2V, I2V | 750
vendory-h3-spicy | 15 | 768p | T2V, I2V | 1500
vendory-h3-turbo | 6 | 480p and 768p | T2V, I2V | 360 each
vendory-h3-turbo | 10 | 480p and 768p | T2V, I2V | 600 each
vendory-h3-turbo | 15 | 480p and 768p | T2V, I2V | 900 each
`;

/** Model | durations | resolutions | most references | runtime | safety of T2V | safety of I2V. */
const modelTable = `
svc-video-1-5 | 6, 10, 15 | 480p, 720p, 1080p | 7 | 45 | applied | applied
svcalt-video-1-4 | 5, 10 | 480p, 720p | 1 | 20 | none | none
svcalt-video-1-5 | 5, 8, 12 | 480p, 720p | 1 | 150 | none | none
svcalt-video-1-5b | 5, 8, 12 | 480p, 720p, 1080p | 1 | 120 | none | none
vendorx-2-0-mini | 6, 10, 15 | 480p, 720p | 2 | 90 | applied | applied
vendory-h3 | 6, 10, 15 | 480p, 768p | 2 | 150 | applied | applied
vendory-h3-spicy | 6, 10, 15 | 480p, 768p | 2 | 150 | standard | none
vendory-h3-turbo | 6, 10, 15 | 480p, 768p | 2 | 90 | applied | applied
`;

const ratioTable = `
svc-video-1-5 | auto, 16:9, 9:16, 3:2, 2:3, 1:1
svcalt-video-1-4 | auto, 16:9, 9:16, 1:1
svcalt-video-1-5 | auto, 16:9, 9:16
svcalt-video-1-5b | auto, 21:9, 16:9, 4:3, 1:1, 3:4, 9:16
vendorx-2-0-mini | auto, 16:9, 9:16, 1:1, 4:3, 3:4, 21:9
vendory-h3 | auto, 16:9, 9:16, 1:1, 4:3, 3:4, 21:9
vendory-h3-spicy | auto, 16:9, 9:16, 1:1, 4:3, 3:4, 21:9
vendory-h3-turbo | auto, 16:9, 9:16, 1:1, 4:3, 3:4, 21:9
`;

const size480 = ["854x480", "480x854", "480x480"];
const size720 = ["1280x720", "720x1280", "720x720"];
const withNativeAudio = ["vendorx-2-0-mini", "vendory-h3", "vendory-h3-spicy", "vendory-h3-turbo"];

const file = new URL("../../deploy/catalog.yaml", import.meta.url);
const { snapshot, faults } = parseCatalog(readFileSync(file, "utf8"));
if (!snapshot) throw new Error(JSON.stringify(faults));
const view = viewOf(snapshot);

const rowsOf = (table: string) =>
  table
    .trim()
    .split("\n")
    .map((line) => line.split(" | "));
const list = (cell = "") => cell.split(", ");
const videos = view.activeModels.filter((model) => model.kind === ModelKind.VIDEO);
const entryOf = (id = "") => toCatalogEntry(view.findModel(id), snapshot);

describe("the shipped catalog", () => {
  test("has every row and price of the table, in its order, and no other", () => {
    const expected = rowsOf(priceTable).flatMap(([id, seconds, resolutions = "", modes, credits]) =>
      resolutions.split(" and ").map((resolution) => ({
        id,
        durationSeconds: Number(seconds),
        resolution,
        modes: list(modes).map((mode) => mode.toLowerCase()),
        credits: Number.parseInt(credits ?? "", 10),
      })),
    );
    expect(expected).toHaveLength(53);
    const published = videos.flatMap(({ id }) =>
      (entryOf(id).videoOptions as object[]).map((row) => ({ id, ...row })),
    );
    expect(published).toEqual(expected);
  });

  test.each(rowsOf(modelTable))("%s: limits, runtime, safety", (id, ...cells) => {
    const [durations, resolutions, references, runtime, t2v, i2v] = cells;
    const entry = entryOf(id);
    expect(new Set(entry.durations as number[])).toEqual(new Set(list(durations).map(Number)));
    expect(new Set(entry.resolutions as string[])).toEqual(new Set(list(resolutions)));
    expect(entry).toMatchObject({
      kind: "video",
      maxReferences: Number(references),
      approxRuntimeSeconds: Number(runtime),
      safetyCheck: { t2v, i2v },
      t2vEnabled: true,
      i2vEnabled: true,
      availableOptions: entry.videoOptions,
    });
    expect(entry.sizes).toEqual(resolutions?.includes("720p") ? [...size480, ...size720] : size480);
  });

  test.each(rowsOf(ratioTable))("%s: ratios %s", (id, ratios) => {
    expect(entryOf(id).availableAspectRatios).toEqual(list(ratios));
  });

  test("has the eight video models, svc-video-1-5 by default, and sound where the API says", () => {
    expect(videos.map(({ id }) => id)).toEqual(rowsOf(modelTable).map(([id]) => id));
    expect(videos.filter((model) => model.isDefault).map(({ id }) => id)).toEqual([
      "svc-video-1-5",
    ]);
    const sounding = videos.filter(({ id }) => entryOf(id).nativeAudio !== "none");
    expect(sounding.map(({ id }) => id)).toEqual(withNativeAudio);
    expect(entryOf("vendory-h3").nativeAudio).toBe("stereo");
    const framed = videos.filter(({ id }) => entryOf(id).firstLastFrame);
    expect(framed.map(({ id }) => id)).toEqual(withNativeAudio);
  });

  test("offers every kind, all of it on the builtin upstream", () => {
    const kinds = new Set(view.activeModels.map((model) => model.kind));
    expect(kinds).toEqual(
      new Set([
        ModelKind.CHAT,
        ModelKind.IMAGE,
        ModelKind.VIDEO,
        ModelKind.SPEECH,
        ModelKind.MUSIC,
      ]),
    );
    const protocols = view.activeModels.flatMap((model) =>
      view.upstreamsOf(model).map((upstream) => upstream.protocol),
    );
    expect(protocols).toHaveLength(view.activeModels.length);
    expect(new Set(protocols)).toEqual(new Set([UpstreamProtocol.BUILTIN]));
  });

  test("has prices and limits for what is no video", () => {
    expect(entryOf("chat-1")).toMatchObject({
      default: true,
      reasoningEfforts: ["low", "medium", "high"],
      inputModalities: ["text", "image"],
      tools: ["*"],
      responsesCapable: true,
    });
    expect(entryOf("image-1")).toMatchObject({
      creditPrice: 5,
      sizes: ["auto", "1024x1024", "1792x1024", "1024x1792"],
      resolutions: ["1k", "2k"],
      availableAspectRatios: ["auto", "16:9", "9:16", "3:2", "2:3", "1:1"],
    });
    expect(entryOf("speech-1").voices).toEqual(
      expect.arrayContaining(["alloy", "echo", "fable", "onyx", "nova", "shimmer", "verse"]),
    );
    expect(entryOf("speech-1").languages).toEqual(expect.arrayContaining(["en", "de", "no"]));
    expect(entryOf("music-1")).toMatchObject({
      creditPrice: 20,
      modes: ["instrumental", "lyrics"],
    });
  });

  test("its examples in comments are good as well", () => {
    const text = readFileSync(file, "utf8");
    // An example is a comment with an indent of two. It has a key, an item or a deeper line of one.
    const awake = text.replace(/^ {2}# ((?:- |\w+:| {2}\w+:).*)$/gm, "  $1");
    const woken = parseCatalog(awake);
    expect(woken.faults).toBeUndefined();
    expect(Object.keys(woken.snapshot?.upstreams ?? {})).toEqual([
      ...["studio", "local", "hosted", "legacy", "claude", "peer"],
    ]);
    expect(woken.snapshot?.models.map(({ id }) => id)).toContain("gpt-oss");
  });
});
