import { describe, expect, test } from "vitest";
import { imageDimensions, videoDimensions } from "./dimensions.ts";

describe("videoDimensions", () => {
  test.each([
    ["480p", "16:9", 854, 480],
    ["480p", "9:16", 480, 854],
    ["480p", "1:1", 480, 480],
    ["720p", "16:9", 1280, 720],
    ["720p", "9:16", 720, 1280],
    ["720p", "1:1", 720, 720],
    ["768p", "16:9", 1366, 768],
    ["1080p", "16:9", 1920, 1080],
    ["480p", "21:9", 1120, 480],
    ["1080p", "21:9", 2520, 1080],
    ["480p", "4:3", 640, 480],
    ["480p", "3:4", 480, 640],
    ["480p", "3:2", 720, 480],
    ["480p", "2:3", 480, 720],
    ["480p", "auto", 854, 480],
  ])("%s %s is %i x %i", (resolution, ratio, width, height) => {
    expect(videoDimensions(resolution, ratio)).toEqual({ width, height });
  });

  test("auto follows the reference, up to 21:9", () => {
    const tall = videoDimensions("480p", "auto", { width: 300, height: 400 });
    expect(tall).toEqual({ width: 480, height: 640 });
    const strip = videoDimensions("480p", "auto", { width: 9000, height: 100 });
    expect(strip).toEqual({ width: 1120, height: 480 });
  });

  test.each([
    ["480", "16:9"],
    ["huge", "16:9"],
    ["480p", "16x9"],
    ["480p", "0:9"],
    ["480p", "9:0"],
  ])("%s %s is refused", (resolution, ratio) => {
    expect(() => videoDimensions(resolution, ratio)).toThrow(RangeError);
  });
});

describe("imageDimensions", () => {
  test.each([
    [{ size: "1792x1024" }, 1792, 1024],
    [{ size: "1024x1024", aspectRatio: "16:9" }, 1024, 1024],
    [{ size: "auto", aspectRatio: "1:1" }, 1024, 1024],
    [{}, 1024, 1024],
    [{ resolution: "2k" }, 2048, 2048],
    [{ resolution: "1k", aspectRatio: "16:9" }, 1360, 768],
    [{ resolution: "1k", aspectRatio: "9:16" }, 768, 1360],
    [{ resolution: "2k", aspectRatio: "3:2" }, 2512, 1680],
    [{ resolution: "720p", aspectRatio: "2:3" }, 720, 1080],
  ])("%j is %i x %i", (shape, width, height) => {
    expect(imageDimensions(shape)).toEqual({ width, height });
  });

  test("auto follows the reference", () => {
    const found = imageDimensions({ aspectRatio: "auto" }, { width: 1600, height: 900 });
    expect(found).toEqual({ width: 1360, height: 768 });
  });

  test.each([{ size: "big" }, { size: "0x10" }, { resolution: "vast" }, { aspectRatio: "wide" }])(
    "%j is refused",
    (shape) => {
      expect(() => imageDimensions(shape)).toThrow(RangeError);
    },
  );
});
