import { describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { cutTables, lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const adminToken = "operator-token-of-the-account-settings-tests";

describe.skipIf(chromiumPath === undefined)("an account's settings in the console", () => {
  const on = startConsole({ env: { GENMESH_ADMIN_TOKEN: adminToken } });

  test("an operator names an account, bounds it, funds it monthly, and finds it by its name", async () => {
    const owner = await on.world.caller();
    const { accountId, keyId } = owner;
    const { page, faults } = await openPage(on.browser);
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, adminToken);
    const path = `/console/operator/accounts/${accountId}`;
    await visit(page, on.origin, path);
    const fact = (name: string) =>
      page
        .locator(".fact")
        .filter({ has: page.getByText(name, { exact: true }) })
        .locator("dd");
    expect(await fact("Rate").textContent()).toBe("6,000 requests a minute (default)");
    expect(await fact("Monthly grant").textContent()).toBe("none");
    const edit = async (values: Record<string, string>) => {
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      for (const [label, value] of Object.entries(values)) {
        await page.getByLabel(label, { exact: true }).fill(value);
      }
      expect(await lookFindings(page)).toEqual([]);
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.getByRole("button", { name: "Save changes" }).click();
      await page.getByLabel("Your admin token").fill(adminToken);
      await page.getByRole("button", { name: "Confirm" }).click();
    };
    await edit({
      ...{ Name: "Harbour Pilots", Notes: "pays by invoice\ncall Ada" },
      ...{ "Requests a minute": "600", "Dollars each month": "25.5", "Credits each month": "40" },
    });
    await page.getByRole("heading", { name: "Harbour Pilots" }).waitFor();
    expect(await fact("Rate").textContent()).toBe("600 requests a minute");
    expect(await fact("Monthly grant").textContent()).toMatch(/^\$25\.50 and 40 credits, next on /);
    expect(await fact("Notes").innerText()).toBe("pays by invoice\ncall Ada");
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    const { account } = await on.world.admin.auth.getAccount({ accountId });
    expect(account).toMatchObject({ requestsPerMinute: 600, notes: "pays by invoice\ncall Ada" });
    expect((await owner.get("/key")).json.data).toMatchObject({ requestsPerMinute: 600 });
    const { monthlyGrant } = await on.world.admin.billing.getMonthlyGrant({ accountId });
    expect(monthlyGrant).toMatchObject({ usdMicros: 25_500_000n, credits: 40n });

    await visit(page, on.origin, "/console/operator/accounts");
    await page.getByLabel("Find by name or id").fill("harbour");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Harbour Pilots" }).waitFor();
    await page.locator("tbody tr").nth(1).waitFor({ state: "detached" });
    expect(await page.getByText("pays by invoice").count()).toBe(0);
    for (const list of [`keys?query=${keyId}`, `audit?account=${accountId}`]) {
      await visit(page, on.origin, `/console/operator/${list}`);
      await page.getByRole("link", { name: "Harbour Pilots" }).first().waitFor();
      for (const width of [1280, 768, 390]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await cutTables(page)).toEqual([]);
      }
      await page.setViewportSize({ width: 1280, height: 900 });
    }

    // A filter takes the beginning of an account's name: the browser fills in the id of the one that is chosen.
    await visit(page, on.origin, "/console/operator/requests");
    await page.getByLabel("Account", { exact: true }).pressSequentially("harb");
    await page.locator(`datalist option[value="${accountId}"]`).waitFor({ state: "attached" });
    expect(new URL(page.url()).search).toBe("");
    await page.getByLabel("Account", { exact: true }).fill(accountId);
    await page.waitForURL((url) => url.searchParams.get("account") === accountId);

    await visit(page, on.origin, path);
    await edit({
      ...{ Notes: "", "Requests a minute": "" },
      ...{ "Dollars each month": "", "Credits each month": "" },
    });
    await page.getByText("6,000 requests a minute (default)").waitFor();
    expect(await fact("Monthly grant").textContent()).toBe("none");
    expect(await fact("Notes").count()).toBe(0);
    expect(faults).toEqual([]);
  });
});
