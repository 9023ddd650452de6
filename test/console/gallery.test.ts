import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

/** Milliseconds in which the built-in upstream makes two images on a busy machine. */
const generationMs = 60_000;

describe.skipIf(chromiumPath === undefined)("the playground's gallery", () => {
  const on = startConsole();
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, (await on.world.caller({ credits: 1_000n })).key);
  });

  const button = (name: string) => page.getByRole("button", { name, exact: true });

  test("an image in full size, others like it, and all of them after a reload", async () => {
    await visit(page, on.origin, "/console/playground?kind=image");
    await page.getByLabel("Prompt", { exact: true }).fill("A fox in the snow");
    await page.getByText("More settings").click();
    await page.getByLabel("Seed").fill("7");
    await page.getByLabel("Images", { exact: true }).fill("2");
    await button("Generate").click();
    await page.locator(".outputs img").nth(1).waitFor({ timeout: generationMs });
    await page.getByLabel("Prompt", { exact: true }).fill("Another thing");
    await button("View: A fox in the snow").first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Image 1 of 2" }).waitFor();
    await page.keyboard.press("ArrowRight");
    await dialog.getByRole("heading", { name: "Image 2 of 2" }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await dialog.getByRole("button", { name: "Vary" }).click();
    await page.getByAltText("Reference 1").waitFor();
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("A fox in the snow");
    expect(await page.getByLabel("Seed").inputValue()).toBe("");
    await page.reload();
    const earlier = page.getByRole("region", { name: "Made earlier" });
    await expect.poll(() => earlier.locator("img").count()).toBe(2);
    expect(await lookFindings(page)).toEqual([]);
    await earlier.getByRole("button").last().click();
    await dialog.getByRole("heading", { name: "Image 2 of 2" }).waitFor();
    await page.keyboard.press("Escape");
    expect(await dialog.count()).toBe(0);
    expect(opened.faults).toEqual([]);
  });
});
