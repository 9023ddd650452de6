import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { lookFindings, openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

const adminToken = "operator-token-of-one-account";

describe.skipIf(chromiumPath === undefined)("an account's page in the console", () => {
  oneProcessOnly();

  let world: World;
  let origin: string;
  let browser: Browser;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
    origin = new URL(world.baseUrl).origin;
    await untilBuilt(origin);
    browser = await openBrowser();
    opened = await openPage(browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, origin, adminToken);
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  const dialog = () => page.locator("dialog[open]").last();
  const button = (name: string) => page.getByRole("button", { name, exact: true }).first();
  const confirm = async () => {
    await page.getByLabel("Your admin token").fill(adminToken);
    await button("Confirm").click();
  };

  test("take funds back that were added by mistake, as far as they are free", async () => {
    const { accountId } = await world.caller({ usdMicros: 3_000_000n });
    await visit(page, origin, `/console/operator/accounts/${accountId}`);
    await button("Take back").click();
    await dialog().getByLabel("Dollars to take back").waitFor();
    expect(await dialog().textContent()).toMatch(/added \$3\.0.* The account has \$3\.0+ free\./);
    await dialog().getByLabel("Dollars to take back").fill("1.25");
    expect(await lookFindings(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Take back", exact: true }).click();
    await confirm();
    await page.getByText("It is taken back.").waitFor();
    const row = page.getByRole("row").filter({ hasText: "takes back entry 1" });
    await row.getByText(/1\.25/).first().waitFor();
    // An entry that took a grant back is no grant that can be taken back.
    expect(await page.getByRole("button", { name: "Take back", exact: true }).count()).toBe(1);
    await button("Take back").click();
    await dialog().getByLabel("Dollars to take back").fill("2");
    await dialog().getByRole("button", { name: "Take back", exact: true }).click();
    await confirm();
    await dialog()
      .getByText(/amount/)
      .waitFor();
    expect(await world.admin.billing.getBalance({ accountId })).toMatchObject({
      usdMicros: { available: 1_750_000n, granted: 1_750_000n },
    });
    await button("Cancel").click();
    expect(opened.faults.filter((fault) => !fault.includes("400"))).toEqual([]);
  });
});
