import sharp from "sharp";
import { describe, expect, test } from "vitest";
import type { ImageRequest } from "#common/words/builtin-models.ts";
import { renderImage } from "./image.ts";

async function render(request: Partial<ImageRequest>) {
  const whole = { prompt: "a lake", width: 192, height: 128, ...request };
  return await renderImage(whole, () => {});
}

async function decode(bytes: Uint8Array) {
  return await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true });
}

describe("renderImage", () => {
  test.each([
    [192, 128],
    [101, 77],
    [16, 16],
    [64, 300],
  ])("is a PNG of %i x %i", async (width, height) => {
    const image = await render({ width, height });
    const { info } = await decode(image.bytes);
    expect((await sharp(image.bytes).metadata()).format).toBe("png");
    expect(info).toMatchObject({ width, height, channels: 3 });
    expect(image).toMatchObject({ width, height, mimeType: "image/png" });
  });

  test("is the same for the same request and differs with prompt and seed", async () => {
    const first = await render({});
    expect((await render({})).bytes).toEqual(first.bytes);
    expect((await render({ prompt: "a lake!" })).bytes).not.toEqual(first.bytes);
    expect((await render({ seed: 1 })).bytes).not.toEqual(first.bytes);
  });

  test.each([
    "mountains",
    "the sea",
    "a city",
    "a forest",
    "the desert",
    "a planet",
    "abstract",
    "a meadow",
  ])("%s has light, shade and colour", async (prompt) => {
    const { data, info } = await decode((await render({ prompt })).bytes);
    const { channels } = await sharp(data, { raw: info }).stats();
    const spread = Math.max(...channels.map(({ stdev }) => stdev));
    expect(spread).toBeGreaterThan(22);
    const counts = new Set<number>();
    for (let at = 0; at < data.length; at += 3) {
      counts.add(((data[at] ?? 0) << 16) | ((data[at + 1] ?? 0) << 8) | (data[at + 2] ?? 0));
    }
    expect(counts.size).toBeGreaterThan(2000);
  });

  test("references show: their colours come into the picture", async () => {
    const solid = (background: string) =>
      sharp({ create: { width: 90, height: 60, channels: 3, background } })
        .jpeg()
        .toBuffer();
    const meanOf = async (references: Uint8Array[]) => {
      const { data, info } = await decode((await render({ prompt: "a city", references })).bytes);
      const upper = sharp(data, { raw: info }).extract({ left: 0, top: 0, width: 192, height: 60 });
      const left = await upper
        .clone()
        .extract({ left: 0, top: 0, width: 60, height: 60 })
        .toBuffer();
      const stats = await sharp(left, { raw: { ...info, width: 60, height: 60 } }).stats();
      return stats.channels.map(({ mean }) => mean);
    };
    const red = await meanOf([await solid("#ff0000")]);
    const green = await meanOf([await solid("#00ff00")]);
    const both = await meanOf([await solid("#00ff00"), await solid("#ff0000")]);
    expect((red[0] ?? 0) - (red[1] ?? 0)).toBeGreaterThan(90);
    expect((green[1] ?? 0) - (green[0] ?? 0)).toBeGreaterThan(90);
    expect((both[1] ?? 0) - (both[0] ?? 0)).toBeGreaterThan(60);
  });

  test("a reference that is no image is an error", async () => {
    await expect(render({ references: [new Uint8Array([1, 2, 3])] })).rejects.toThrow();
  });

  test("stops where it is told to", async () => {
    const left = new Error("the caller left");
    const request = { prompt: "x", width: 64, height: 64 };
    const stopped = renderImage(request, () => {
      throw left;
    });
    await expect(stopped).rejects.toBe(left);
  });
});
