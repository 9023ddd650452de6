import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

/** The code of the screen of usage, and of all that only it loads. */
const usageCode = "**/console/assets/usage-*.js";

describe.skipIf(chromiumPath === undefined)("a screen whose code cannot be fetched", () => {
  const on = startConsole();
  let page: Page;

  beforeEach(async () => {
    const opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, (await on.world.caller()).key);
    await page.route(usageCode, (route) => route.abort());
  });

  const goTo = (name: string) => page.getByRole("link", { name, exact: true }).click();
  const title = (text: string) => page.getByRole("heading", { level: 1, name: text }).waitFor();

  test("says so, and another try shows it", async () => {
    await goTo("Usage");
    await title("This screen could not be loaded");
    expect(await lookFindings(page)).toEqual([]);
    await page.unroute(usageCode);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByRole("button", { name: "Try again" }).click();
    await title("Usage");
  });

  test("offers a reload where the service has another build, and the other screens stay", async () => {
    await page.route("**/console/", async (route) => {
      const response = await route.fetch();
      const text = await response.text();
      await route.fulfill({ response, body: text.replace(/main-[^."]+\.js/, "main-another1.js") });
    });
    await goTo("Usage");
    await page.getByText("The service has a newer version of the console.").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByText("A new version of the console is available.").waitFor();
    await goTo("Models");
    await title("Models");
    await goTo("Usage");
    await page.getByText("The service has a newer version of the console.").waitFor();
    await page.unrouteAll({ behavior: "wait" });
    await page.getByRole("button", { name: "Reload the page" }).click();
    await title("Usage");
  });

  test("offers a new build when the reader comes back, and takes no half-written form away", async () => {
    await visit(page, on.origin, "/console/playground?kind=chat&model=chat-1");
    await page.getByLabel("Message").fill("Half a thought");
    await page.route("**/console/", async (route) => {
      await route.fulfill({
        contentType: "text/html",
        body: '<script type="module" src="/console/assets/main-another1.js"></script>',
      });
    });
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await page.getByText("A new version of the console is available.").waitFor();
    expect(await page.getByLabel("Message").inputValue()).toBe("Half a thought");
  });
});
