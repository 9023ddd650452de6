import type { Page } from "playwright-core";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { withMedia } from "../e2e/media-world.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import {
  formOf,
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../support/scripted-media-upstream.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const masked = {
  ...{ id: "masked-image", kind: "image", creditPrice: 3, upstream: "scripted" },
  ...{ sizes: ["64x64"], maxReferences: 2, masks: true },
};
const edits = "POST /images/edits";

describe.skipIf(chromiumPath === undefined)("masks in the console's playground", () => {
  let media: ScriptedMediaUpstream;
  beforeAll(async () => {
    const images = [await samplePng(64, 64)];
    const outputs = { images, video: sampleMp4({ width: 64, height: 64 }), sound: sampleMp3() };
    media = await startScriptedMediaUpstream("openai", outputs);
  });
  afterAll(() => media?.[Symbol.asyncDispose]());
  const on = startConsole({
    catalog: (usual) => {
      const made = withMedia(usual, media.baseUrl);
      return { ...made, models: [...made.models, masked] };
    },
  });
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    media.requests.length = 0;
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(20_000);
    await signIn(page, on.origin, (await on.world.caller({ credits: 100n })).key);
    await visit(page, on.origin, "/console/playground?kind=image&model=masked-image");
  });

  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const brush = () => page.getByRole("application", { name: "Brush over the image" });
  const status = () => page.getByRole("dialog").getByRole("status");
  const code = () => page.locator("figure.code pre").textContent();

  /** Gives an image of this size as a reference, and opens the brush over it. */
  async function openBrush(width: number, height: number): Promise<void> {
    await page.getByLabel("Prompt", { exact: true }).fill("A boat in its place");
    await page.getByLabel("Images to upload").setInputFiles(await imageOf(width, height));
    await button("Paint a mask").click();
    await brush().waitFor();
  }

  /** The place in the window of a place of the image, whose width and height are 1. */
  async function placeOf(x: number, y: number) {
    const box = (await brush().boundingBox()) ?? expect.unreachable("no brush");
    return { x: box.x + x * box.width, y: box.y + y * box.height };
  }

  async function drag(from: readonly [number, number], to: readonly [number, number]) {
    const [first, last] = [await placeOf(...from), await placeOf(...to)];
    await page.mouse.move(first.x, first.y);
    await page.mouse.down();
    await page.mouse.move(last.x, last.y, { steps: 4 });
    await page.mouse.up();
  }

  /** The mask that the upstream got with the only edit: its size, and the alpha at a place of the image, whose width and height are 1. */
  async function maskSent() {
    const requests = media.seen(edits);
    expect(requests).toHaveLength(1);
    const form = await formOf(requests[0] ?? expect.unreachable("nothing was sent"));
    const mask = form.get("mask");
    if (!(mask instanceof Blob)) return expect.unreachable("there was no mask");
    const { data, info } = await sharp(Buffer.from(await mask.arrayBuffer()))
      .raw()
      .toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    const pixelOf = (x: number, y: number) =>
      Math.floor(y * height) * width + Math.floor(x * width);
    return {
      size: [width, height, channels],
      alphaAt: (x: number, y: number) => data[pixelOf(x, y) * channels + 3],
    };
  }

  test("a mask is painted by mouse and keyboard, in part erased, and sent in the image's size", async () => {
    await openBrush(320, 240);
    await drag([0.1, 0.2], [0.9, 0.2]);
    await drag([0.1, 0.5], [0.9, 0.5]);
    await status().getByText("% of the image may change.").waitFor();
    await button("Undo").click();
    await page.keyboard.press("Control+z");
    await status().getByText("Nothing is painted.").waitFor();
    expect(await button("Use this mask").isDisabled()).toBe(true);
    await drag([0.1, 0.8], [0.9, 0.8]);
    await brush().press("ArrowUp");
    await button("Clear").click();
    await drag([0.1, 0.2], [0.9, 0.2]);
    // A closed dialog loses nothing.
    await page.keyboard.press("Escape");
    await button("Paint a mask").click();
    await status().getByText("% of the image may change.").waitFor();
    await button("Eraser").click();
    await drag([0.4, 0.2], [0.6, 0.2]);
    await button("Brush").click();
    // From where the eraser was, to the right and down.
    await brush().press("Space");
    for (let press = 0; press < 40; press += 1) await brush().press("ArrowDown");
    await brush().press("Space");
    await brush().press("ArrowRight");
    // The form behind the dialog sends nothing.
    await page.getByLabel("Brush size").press("Enter");
    expect(await lookFindings(page)).toEqual([]);
    await button("Use this mask").click();
    await button("Change the mask").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    expect(await code()).toContain('"mask": {');
    await button("Generate").click();
    await page.getByText("charged 3 credits").waitFor();
    const { size, alphaAt } = await maskSent();
    expect(size).toEqual([320, 240, 4]);
    expect([alphaAt(0.2, 0.2), alphaAt(0.8, 0.2), alphaAt(0.6, 0.6)]).toEqual([0, 0, 0]);
    expect([alphaAt(0.5, 0.2), alphaAt(0.3, 0.8), alphaAt(0.9, 0.9)]).toEqual([255, 255, 255]);
    expect(opened.faults).toEqual([]);
  });

  test("a finger paints on a narrow screen, over a large image", async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await openBrush(3_000, 2_000);
    const devtools = await page.context().newCDPSession(page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: object[]) =>
      devtools.send("Input.dispatchTouchEvent", {
        type,
        touchPoints: touchPoints as { x: number; y: number }[],
      });
    await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: true });
    await touch("touchStart", await placeOf(0.2, 0.5));
    await touch("touchMove", await placeOf(0.5, 0.5));
    await touch("touchMove", await placeOf(0.8, 0.5));
    await touch("touchEnd");
    await status().getByText("% of the image may change.").waitFor();
    await button("Use this mask").click();
    await button("Generate").click();
    await page.getByText("charged 3 credits").waitFor();
    const { size, alphaAt } = await maskSent();
    expect(size).toEqual([3_000, 2_000, 4]);
    expect([alphaAt(0.3, 0.5), alphaAt(0.7, 0.5)]).toEqual([0, 0]);
    expect([alphaAt(0.05, 0.5), alphaAt(0.5, 0.2), alphaAt(0.5, 0.8)]).toEqual([255, 255, 255]);
    expect(opened.faults).toEqual([]);
  });

  test("a mask is opened from a file, kept by a link, changed, and left with its image", async () => {
    await openBrush(320, 240);
    const open = page.getByLabel("Mask to open");
    await open.setInputFiles({ name: "m.png", mimeType: "image/png", buffer: Buffer.from("none") });
    await page.getByText("The file of this mask is no image.").waitFor();
    await open.setInputFiles(await rightHalfMask(160, 120));
    await status().getByText("50% of the image may change.").waitFor();
    await button("Use this mask").click();
    await button("Copy link to these settings").click();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    await page.goto("about:blank");
    await page.goto(link);
    await button("Change the mask").click();
    await status().getByText("50% of the image may change.").waitFor();
    await drag([0.25, 0.2], [0.25, 0.8]);
    await button("Use this mask").click();
    await button("Generate").click();
    await page.getByText("charged 3 credits").waitFor();
    const { size, alphaAt } = await maskSent();
    expect(size).toEqual([320, 240, 4]);
    expect([alphaAt(0.25, 0.5), alphaAt(0.6, 0.1), alphaAt(0.9, 0.9)]).toEqual([0, 0, 0]);
    expect([alphaAt(0.1, 0.1), alphaAt(0.4, 0.9)]).toEqual([255, 255]);
    expect(await code()).toContain('"mask": {');
    await page.getByLabel("Model", { exact: true }).selectOption("scripted-image");
    await expect.poll(code).not.toContain('"mask": {');
    expect(await page.getByText("Mask", { exact: true }).count()).toBe(0);
    await page.getByLabel("Model", { exact: true }).selectOption("masked-image");
    await expect.poll(code).toContain('"mask": {');
    await page.getByLabel("Images to upload").setInputFiles(await imageOf(64, 64));
    await page.getByAltText("Reference 2").waitFor();
    await button("Take out reference 1").click();
    await button("Paint a mask").waitFor();
    expect(await code()).not.toContain('"mask": {');
    expect(opened.faults).toEqual([]);
  });
});

async function imageOf(width: number, height: number) {
  const image = sharp({ create: { width, height, channels: 3, background: "#3d5bd9" } }).png();
  return { name: "sea.png", mimeType: "image/png", buffer: await image.toBuffer() };
}

/** A mask whose right half is transparent. */
async function rightHalfMask(width: number, height: number) {
  const left = sharp({ create: { width: width / 2, height, channels: 4, background: "#000" } });
  const mask = left.extend({ right: width / 2, background: { r: 0, g: 0, b: 0, alpha: 0 } }).png();
  return { name: "half.png", mimeType: "image/png", buffer: await mask.toBuffer() };
}
