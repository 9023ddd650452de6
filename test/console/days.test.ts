import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { browserNote, chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";
import { startUsedWorld, type UsedWorld } from "./used-world.ts";

const operatorToken = "operator-token-of-the-days-tests";
/** The first and the last time zone to begin a day, and two between. */
const zones = ["Pacific/Kiritimati", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Pago_Pago"];

describe.skipIf(chromiumPath === undefined)(`a day is the same in each zone${browserNote}`, () => {
  oneProcessOnly();

  let used: UsedWorld;
  let browser: Browser;
  let owner: Caller;
  let origin: string;

  beforeAll(async () => {
    used = await startUsedWorld(operatorToken);
    ({ owner, origin } = used);
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await used?.[Symbol.asyncDispose]();
  });

  const open = async (timezoneId: string, secret: string) => {
    const opened = await openPage(browser, { timezoneId });
    await signIn(opened.page, origin, secret);
    return opened;
  };

  test.each(zones)("%s: a key's last day, as it was typed", async (zone) => {
    const { page, faults, close } = await open(zone, owner.key);
    await visit(page, origin, "/console/keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Name", { exact: true }).fill(zone);
    await page.getByLabel("Last day (UTC)").fill("2099-12-31");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Your API key").fill(owner.key);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "I have copied it" }).click();
    const row = page.getByRole("row", { name: zone });
    expect(await row.locator("time[datetime^='2099']").textContent()).toBe("31 Dec 2099 (UTC)");
    const { data } = (await owner.get("/keys")).json;
    const made = data.find(({ name }: { name: string }) => name === zone);
    expect(made.expires_at).toBe("2099-12-31T23:59:59.999Z");
    await row.getByRole("button", { name: "Edit" }).click();
    expect(await page.getByLabel("Last day (UTC)").inputValue()).toBe("2099-12-31");
    expect(faults).toEqual([]);
    await close();
  });

  test.each(zones)("%s: what operators type and see", async (zone) => {
    const body = { name: `of ${zone}`, expiresAt: "2099-12-31T23:59:59.999Z" };
    await owner.post("/keys", body);
    const { page, faults, close } = await open(zone, operatorToken);
    await visit(page, origin, `/console/operator/keys?account=${owner.accountId}`);
    const row = page.getByRole("row", { name: body.name });
    await row.getByRole("button", { name: "Edit" }).click();
    expect(await page.getByLabel("Last day (UTC)").inputValue()).toBe("2099-12-31");
    await page.keyboard.press("Escape");

    await visit(page, origin, `/console/operator/accounts/${owner.accountId}`);
    await page.getByLabel("From (UTC)").fill("2026-05-01");
    await page.getByLabel("To the end of (UTC)").fill("2026-05-31");
    const href = await page.getByRole("link", { name: "Download CSV" }).getAttribute("href");
    const asked = new URL(href ?? "", origin).searchParams;
    expect([asked.get("from"), asked.get("to")]).toEqual([
      "2026-05-01T00:00:00.000Z",
      "2026-06-01T00:00:00.000Z",
    ]);
    expect(faults).toEqual([]);
    await close();
  });

  test.each(zones)("%s: days of use, as the ledger counts them", async (zone) => {
    const { page, faults, close } = await open(zone, owner.key);
    await visit(page, origin, "/console/usage?range=7d&width=1d");
    const days = page.getByRole("region", { name: "Figures of the chart" }).getByRole("rowheader");
    await days.first().waitFor();
    const since = Math.floor(Date.now() / 86_400_000 - 6) * 86_400;
    const usage = (await owner.get(`/usage?start_time=${since}&bucket_width=1d&limit=7`)).json;
    const begun = usage.data
      .filter(({ results }: { results: unknown[] }) => results.length > 0)
      .map(({ start_time }: { start_time: number }) => new Date(start_time * 1_000));
    const options = { day: "numeric", month: "short", timeZone: "UTC" } as const;
    expect(await days.allTextContents()).toEqual(
      begun.reverse().map((day: Date) => day.toLocaleDateString("en-GB", options)),
    );
    expect(faults).toEqual([]);
    await close();
  });
});
