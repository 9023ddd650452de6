import { describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

describe.skipIf(chromiumPath === undefined)("the chart of usage in the console", () => {
  const on = startConsole();
  test("the axis of a small account's chart is exact", async () => {
    const caller = await on.world.caller();
    await caller.post("/responses", { model: "chat-1", input: "Hello" });
    const { page } = await openPage(on.browser);
    await signIn(page, on.origin, caller.key);
    await page.addInitScript(() => {
      const drawn: string[] = [];
      Object.assign(globalThis, { drawn });
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.push(text);
        fillText.call(this, text, ...place);
      };
    });
    await page.route(/\/v1\/usage\?/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const { results } of json.data) {
        for (const one of results) one.spentUsdMicros = 15_000;
      }
      await route.fulfill({ response, json });
    });
    await visit(page, on.origin, "/console/usage");
    const drawn = await page.evaluate(() => (globalThis as unknown as { drawn: string[] }).drawn);
    const sums = drawn.filter((text) => text.startsWith("$")).map((text) => Number(text.slice(1)));
    expect(sums).toContain(0.015);
  });
});
