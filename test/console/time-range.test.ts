import { describe, expect, test } from "vitest";
import { ended, submit } from "../e2e/media-world.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";
import { everyScope } from "./used-world.ts";

describe.skipIf(chromiumPath === undefined)("ranges of time", () => {
  const on = startConsole();

  test.each([
    ["requests", "Ended"],
    ["jobs", "Submitted"],
    ["billing", "Time"],
  ])("of %s are chosen, typed in local time, and kept in the address", async (screen, label) => {
    const first = await on.world.caller({ credits: 1_000n });
    const caller = await on.world.withKey(first, { name: "website", scopes: everyScope });
    await ended(caller, await submit(caller, "images", { model: "image-1", prompt: "a boat" }));
    const { page, faults, close } = await openPage(on.browser);
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, caller.key);
    await visit(page, on.origin, `/console/${screen}`);
    const rows = page.getByRole("row").filter({ hasText: "image-1" });
    await rows.waitFor();
    const range = page.getByLabel(label, { exact: true });
    await range.selectOption("Last hour");
    await expect.poll(() => page.url()).toContain("range=1h");
    await rows.waitFor();
    await range.selectOption("Custom");
    const fieldOf = (name: string) => page.getByLabel(new RegExp(`^${name} \\(.+\\)$`));
    // As the reader's clock shows it.
    const localNow = await page.evaluate(() => {
      const now = new Date();
      return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    });
    const nextYear = localNow.replace(/^\d+/, (year) => String(Number(year) + 1));
    await fieldOf("From").fill(localNow.replace(/T.*/, "T00:00"));
    await rows.waitFor();
    await fieldOf("Before").fill(nextYear);
    await rows.waitFor();
    await fieldOf("From").fill(nextYear);
    await rows.waitFor({ state: "detached" });
    await fieldOf("Before").fill("");
    await expect.poll(() => page.url()).toMatch(/range=custom&from=\d+$/);
    await page.reload();
    expect(await fieldOf("From").inputValue()).toBe(nextYear);
    expect(await range.inputValue()).toBe("custom");
    expect(await rows.count()).toBe(0);
    expect(await lookFindings(page)).toEqual([]);
    await range.selectOption("Any time");
    await rows.waitFor();
    expect(page.url()).not.toMatch(/range|from/);
    expect(faults).toEqual([]);
    await close();
  });
});
