import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "../e2e/caller.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { axeFindings, chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

describe.skipIf(chromiumPath === undefined)("limits and alerts in the console", () => {
  oneProcessOnly();

  let world: World;
  let browser: Browser;
  let owner: Caller;
  let origin: string;

  beforeAll(async () => {
    world = await startWorld();
    origin = new URL(world.baseUrl).origin;
    const { KEYS, TEXT, FILES, MODELS, BILLING, WEBHOOKS, USAGE_READ_ALL } = Scope;
    owner = await world.withKey(await world.caller(), {
      name: "owner",
      scopes: [KEYS, TEXT, FILES, MODELS, BILLING, WEBHOOKS, USAGE_READ_ALL],
    });
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  test("a key is given a limit of a day and a webhook, which its row and its dialog show", async () => {
    const { page, faults, close } = await openPage(browser);
    await signIn(page, origin, owner.key);
    await visit(page, origin, "/console/keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Name").fill("limited");
    await page.getByLabel("Limit in US dollars").fill("2.5");
    await page.getByLabel("The limit begins anew").selectOption("daily");
    await page.getByLabel("Webhook", { exact: true }).fill("https://example.com/hooks");
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Your API key").fill(owner.key);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "I have copied it" }).click();
    const row = page.getByRole("row", { name: /limited/ });
    await row.getByText("today").waitFor();
    const made = async () => {
      const { data } = (await owner.get("/keys")).json;
      return data.find(({ name }: { name: string }) => name === "limited");
    };
    const webhookUrl = "https://example.com/hooks";
    expect(await made()).toMatchObject({ limit: 2.5, limit_reset: "daily", webhookUrl });
    await row.getByRole("button", { name: "Edit" }).click();
    expect(await page.getByLabel("The limit begins anew").inputValue()).toBe("daily");
    expect(await page.getByLabel("Webhook", { exact: true }).inputValue()).toBe(webhookUrl);
    await page.getByLabel("The limit begins anew").selectOption("never");
    await page.getByLabel("Alert below a balance of").fill("1.25");
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByLabel("Your API key").fill(owner.key);
    await page.keyboard.press("Enter");
    await row.getByText("in all").waitFor();
    expect(await made()).toMatchObject({ limit_reset: null, lowBalanceUsdMicros: 1_250_000 });
    expect(faults).toEqual([]);
    await close();
  });

  test("the account's alerts are set on the billing screen", async () => {
    const { page, faults, close } = await openPage(browser);
    await signIn(page, origin, owner.key);
    await visit(page, origin, "/console/billing?tab=alerts");
    await page.getByLabel("Alert below a balance of").fill("5");
    await page.getByLabel("Webhook", { exact: true }).fill("https://example.com/low");
    await page.getByRole("button", { name: "Save alerts" }).click();
    await page.getByText("Saved. It counts from now on.").waitFor();
    expect((await owner.get("/billing/alerts")).json).toMatchObject({
      lowBalanceUsdMicros: 5_000_000,
      webhookUrl: "https://example.com/low",
    });
    await visit(page, origin, "/console/billing?tab=alerts");
    expect(await page.getByLabel("Alert below a balance of").inputValue()).toBe("5");
    expect(faults).toEqual([]);
    await close();
  });

  test("the files screen shows how much room is used, by how many files", async () => {
    const { page, faults, close } = await openPage(browser);
    await signIn(page, origin, owner.key);
    await visit(page, origin, "/console/files");
    await page.getByText("0 bytes of 1 GiB used by 0 files").waitFor();
    expect(faults).toEqual([]);
    await close();
  });
});
