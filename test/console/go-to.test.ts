import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

describe.skipIf(chromiumPath === undefined)("finding one's way in the console", () => {
  const on = startConsole();
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, (await on.world.caller()).key);
  });

  const field = () => page.getByRole("combobox", { name: "A screen, a model, or an id" });
  const options = () => page.getByRole("dialog").getByRole("option");

  test("Ctrl and K go to a screen, a model or an id, by the keys alone", async () => {
    await page.keyboard.press("Control+k");
    await field().waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await field().fill("usa");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.keyboard.press("Control+k");
    await field().fill("svc-video");
    await options().first().waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    expect(await options().first().getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Playground" }).waitFor();
    expect(new URL(page.url()).searchParams.get("model")).toBe("svc-video-1-5");
    await page.getByRole("button", { name: "Go to…" }).click();
    await field().fill("req_0123456789");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Requests" }).waitFor();
    expect(new URL(page.url()).searchParams.get("id")).toBe("req_0123456789");
    await page.keyboard.press("Control+k");
    await field().fill("no such thing");
    await page.getByText("Nothing has this name.").waitFor();
    await page.keyboard.press("Escape");
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(opened.faults).toEqual([]);
  });

  test("Ctrl and K work in a narrow window whose menu is closed", async () => {
    await page.setViewportSize({ width: 390, height: 900 });
    await page.keyboard.press("Control+k");
    await field().fill("usa");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
  });

  test("models are searched and sorted, with their context and price per million", async () => {
    await visit(page, on.origin, "/console/models");
    const cards = page.locator(".model");
    const all = await cards.count();
    await page.getByLabel("Search").fill("chat one");
    await expect.poll(() => cards.count()).toBe(1);
    const facts = await cards.first().textContent();
    expect(facts).toMatch(/Context[\d,]+ tokens/);
    expect(facts).toContain("$0.25 per million");
    await page.getByLabel("Search").fill("");
    await expect.poll(() => cards.count()).toBe(all);
    await page.getByLabel("Kind").selectOption("chat");
    await page.getByLabel("Order").selectOption("price");
    await expect.poll(() => new URL(page.url()).searchParams.get("sort")).toBe("price");
    const prices = await cards.evaluateAll((each) =>
      each.map((one) =>
        [...one.querySelectorAll("dt")]
          .filter(({ textContent }) => /^(Input|Output)$/.test(textContent ?? ""))
          .reduce((sum, dt) => sum + Number(dt.parentElement?.querySelector("data")?.value), 0),
      ),
    );
    expect(prices.length).toBeGreaterThan(3);
    expect(prices).toEqual([...prices].sort((one, other) => one - other));
    await page.getByLabel("Search").fill("zzz");
    await page.getByText("No model has these words").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
