import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { cutTables, lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";
import { everyScope } from "./used-world.ts";

const adminToken = "operator-token-of-the-daily-acts-tests";

describe.skipIf(chromiumPath === undefined)("daily acts in the console", () => {
  const on = startConsole({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
  const opened = async (secret: string): Promise<Page> => {
    const { page } = await openPage(on.browser);
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, secret);
    return page;
  };

  test("an operator finds a key by its name, and is asked before it stops others", async () => {
    const caller = await on.world.caller();
    const { keyId } = await on.world.withKey(caller, { name: "Nightly batch of the shop" });
    const page = await opened(adminToken);
    await visit(page, on.origin, "/console/operator/keys");
    await page.getByLabel("Find by name or id").fill("batch of");
    await page.keyboard.press("Enter");
    const row = page.getByRole("row").filter({ hasText: "Nightly batch of the shop" });
    await row.waitFor();
    // The list of all keys has that row, too.
    await page.locator("tbody tr").nth(1).waitFor({ state: "detached" });
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
      const { keys } = await on.world.admin.auth.listKeys({ accountId: caller.accountId });
      return keys.find((key) => key.keyId === keyId)?.disabled;
    };
    expect(await stateOf()).toBe(false);

    await page.setViewportSize({ width: 1280, height: 900 });
    await visit(page, on.origin, `/console/operator/accounts/${caller.accountId}`);
    await page.getByRole("button", { name: "Suspend", exact: true }).click();
    await page.locator("dialog").getByText("2 keys").waitFor();
    expect(await page.getByText("Suspended since").count()).toBe(0);
    await page.getByRole("button", { name: "Suspend account" }).click();
    await page.getByText("Suspended since").waitFor();
  });

  test("a limited key sees its limit, what is left, and when it begins anew", async () => {
    const limited = await on.world.withKey(await on.world.caller(), {
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
