import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { cutTables, lookFindings, openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";
import { everyScope } from "./used-world.ts";

const adminToken = "operator-token-of-the-daily-acts-tests";

describe.skipIf(chromiumPath === undefined)("daily acts in the console", () => {
  oneProcessOnly();

  let world: World;
  let browser: Browser;
  let origin: string;

  beforeAll(async () => {
    world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
    origin = new URL(world.baseUrl).origin;
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  const opened = async (secret: string): Promise<Page> => {
    const { page } = await openPage(browser);
    page.setDefaultTimeout(15_000);
    await signIn(page, origin, secret);
    return page;
  };

  test("an operator finds a key by its name, and is asked before it stops others", async () => {
    const caller = await world.caller();
    const { keyId } = await world.withKey(caller, { name: "Nightly batch of the shop" });
    const page = await opened(adminToken);
    await visit(page, origin, "/console/operator/keys");
    await page.getByLabel("Find by name or id").fill("batch of");
    await page.keyboard.press("Enter");
    const row = page.getByRole("row").filter({ hasText: "Nightly batch of the shop" });
    await row.waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    for (const width of [1280, 768, 390]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await cutTables(page)).toEqual([]);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await row.getByRole("button", { name: "Disable" }).click();
    await page.locator("dialog").getByText("0 requests and jobs").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Cancel" }).click();
    const stateOf = async () => {
      const { keys } = await world.admin.auth.listKeys({ accountId: caller.accountId });
      return keys.find((key) => key.keyId === keyId)?.disabled;
    };
    expect(await stateOf()).toBe(false);

    await page.setViewportSize({ width: 1280, height: 900 });
    await visit(page, origin, `/console/operator/accounts/${caller.accountId}`);
    await page.getByRole("button", { name: "Suspend", exact: true }).click();
    await page.locator("dialog").getByText("2 keys").waitFor();
    expect(await page.getByText("Suspended since").count()).toBe(0);
    await page.getByRole("button", { name: "Suspend account" }).click();
    await page.getByText("Suspended since").waitFor();
  });

  test("a limited key sees its limit, what is left, and when it begins anew", async () => {
    const limited = await world.withKey(await world.caller(), {
      ...{ name: "limited", scopes: everyScope },
      ...{ monthlyUsdMicrosLimit: 2_500_000n, limitReset: KeyLimitReset.WEEKLY },
    });
    const page = await opened(limited.key);
    const limit = page.locator(".figure").filter({ hasText: "Left of this key's limit" });
    expect(await limit.locator("dd").first().textContent()).toBe("$2.50");
    await page.getByText("It begins anew on Monday at midnight, UTC.").waitFor();
    expect(await lookFindings(page)).toEqual([]);
  });
});
