import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ended, submit } from "../e2e/media-world.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";
import { everyScope } from "./used-world.ts";

describe.skipIf(chromiumPath === undefined)("words whose meaning is at hand", () => {
  const on = startConsole();

  test("the keyboard reaches a status, its meaning is its description, and Escape takes it away", async () => {
    const first = await on.world.caller({ credits: 1_000n });
    const caller = await on.world.withKey(first, { name: "website", scopes: everyScope });
    const webhookUrl = "https://receiver.invalid/";
    const asked = { model: "image-1", prompt: "a boat", webhookUrl };
    await ended(caller, await submit(caller, "images", asked));
    const { page, faults, close } = await openPage(on.browser);
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, caller.key);
    for (const [path, word, meaning] of [
      ["requests", "completed", "It has its whole answer."],
      ["jobs", "completed", "Its files are there."],
      ["webhooks", "pending", /^It is sent, or waits/],
      ["billing", "charge", /^A request or job was charged/],
      ["keys", "this session", "You are signed in with this key."],
    ] as const) {
      await visit(page, on.origin, `/console/${path}`);
      const status = page.getByRole("row").getByRole("button", { name: word, exact: true });
      await status.first().waitFor();
      expect(await page.getByRole("tooltip").count()).toBe(0);
      await tabTo(page, word);
      const tip = page.getByRole("tooltip").filter({ visible: true });
      expect(await tip.textContent()).toMatch(meaning);
      expect(await descriptionOfFocus(page)).toMatch(meaning);
      await page.keyboard.press("Escape");
      await tip.waitFor({ state: "hidden" });
      await status.first().hover();
      await tip.waitFor();
      // It stays while the pointer is on it.
      await tip.hover();
      expect(await tip.textContent()).toMatch(meaning);
      await page.mouse.move(0, 0);
      await page.keyboard.press("Tab");
      expect(await page.getByRole("tooltip").filter({ hasText: meaning }).count()).toBe(0);
    }
    expect(await lookFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
    await close();
  });
});

/** Presses Tab until the focus is on a button of a row with this text. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let presses = 0; presses < 100; presses += 1) {
    await page.keyboard.press("Tab");
    const isThere = await page.evaluate(
      (wanted) =>
        document.activeElement?.textContent === wanted &&
        document.activeElement.closest("tr") !== null,
      text,
    );
    if (isThere) return;
  }
  throw new Error(`no Tab led to "${text}"`);
}

function descriptionOfFocus(page: Page): Promise<string> {
  return page.evaluate(() => {
    const id = document.activeElement?.getAttribute("aria-describedby");
    return (id && document.getElementById(id)?.textContent) || "";
  });
}
