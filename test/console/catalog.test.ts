import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const adminToken = "operator-token-of-the-catalogs-day";
const screen = "/console/operator/catalog";

const shipped = await readFile(new URL("../../deploy/catalog.yaml", import.meta.url), "utf8");

/** Opens the catalog of an operator. */
async function openCatalog({ browser, origin }: ReturnType<typeof startConsole>) {
  const opened = await openPage(browser);
  opened.page.setDefaultTimeout(15_000);
  await signIn(opened.page, origin, adminToken);
  await visit(opened.page, origin, screen);
  return opened;
}

const buttonOf = (page: Page) => (name: string) =>
  page.getByRole("button", { name, exact: true }).first();
const text = (page: Page) => page.getByLabel("Catalog (YAML)");

describe.skipIf(chromiumPath === undefined)("the operator's catalog", () => {
  const opened = startConsole({
    ...{ catalog: shipped, isCatalogStored: true },
    env: { GENMESH_ADMIN_TOKEN: adminToken },
  });
  let page: Page;
  let faults: readonly string[];
  beforeAll(async () => {
    ({ page, faults } = await openCatalog(opened));
  });
  const press = (name: string) => buttonOf(page)(name).click();
  const confirm = async () => {
    await page.getByLabel("Your admin token").fill(adminToken);
    await press("Confirm");
  };
  const row = (words: string) => page.getByRole("row").filter({ hasText: words });
  const price = () =>
    page.locator("article", { hasText: "image-1" }).locator(".fact").first().textContent();

  test("is edited, checked, put in force with a note, and rolled back", async () => {
    await page.getByText("The catalog file is in force until the first change here.").waitFor();
    const before = await price();
    await press("Edit what is in force");
    expect(await text(page).inputValue()).toBe(shipped);
    await text(page).fill(shipped.replace("creditPrice: 5", "creditPrice: 6"));
    await press("Check");
    await page.locator(".diff", { hasText: "creditPrice" }).getByText('"6"').waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await press("Put in force");
    const dialog = page.locator("dialog[open]").last();
    await dialog.getByLabel("Note").fill("images cost more");
    expect(await lookFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Put in force" }).click();
    await confirm();
    await row("images cost more").getByText("in force").waitFor();
    await expect.poll(price).not.toBe(before);
    expect(await lookFindings(page)).toEqual([]);

    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download YAML" }).click(),
    ]);
    expect(await readFile(await download.path(), "utf8")).toContain("creditPrice: 6");

    await row("the file").getByRole("button", { name: "Roll back" }).click();
    await page.locator("dialog[open] .diff").getByText('"5"').waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.locator("dialog[open]").getByRole("button", { name: "Roll back" }).click();
    await confirm();
    await page.getByText("In force: version 2").waitFor();
    await expect.poll(price).toBe(before);
    expect(faults).toEqual([]);
  });

  test("with faults is not offered to be put in force", async () => {
    await text(page).fill("models: 7");
    await press("Check");
    await page.getByText("It would be refused. The catalog in force would stay.").waitFor();
    expect(await buttonOf(page)("Put in force").count()).toBe(0);
    // A text that has changed since its check is checked again first.
    await press("Edit what is in force");
    await press("Check");
    await buttonOf(page)("Put in force").waitFor();
    await text(page).fill("models: 7");
    expect(await buttonOf(page)("Put in force").count()).toBe(0);
  });

  test("that another operator has changed meanwhile is refused, and the draft stays", async () => {
    await press("Edit what is in force");
    await text(page).fill(shipped.replace("creditPrice: 5", "creditPrice: 7"));
    await press("Check");
    const other = await openCatalog(opened);
    const pressThere = (name: string) => buttonOf(other.page)(name).click();
    await pressThere("Edit what is in force");
    await pressThere("Check");
    await pressThere("Put in force");
    await other.page.locator("dialog[open]").getByRole("button", { name: "Put in force" }).click();
    await other.page.getByLabel("Your admin token").fill(adminToken);
    await pressThere("Confirm");
    await other.page.getByText("In force: version 3").waitFor();
    await other.page.context().close();

    await press("Put in force");
    await page.locator("dialog[open]").getByRole("button", { name: "Put in force" }).click();
    await confirm();
    await page.getByText("Another version of the catalog has come into force").waitFor();
    await press("Cancel");
    expect(await text(page).inputValue()).toContain("creditPrice: 7");
    await press("Check");
    await press("Put in force");
    await page.locator("dialog[open]").getByRole("button", { name: "Put in force" }).click();
    await confirm();
    await page.getByText("In force: version 4").waitFor();
  });
});

describe.skipIf(chromiumPath === undefined)("a catalog whose file is the master", () => {
  const opened = startConsole({ env: { GENMESH_ADMIN_TOKEN: adminToken } });

  test("says so, can be read and checked, and not be put in force", async () => {
    const { page, faults } = await openCatalog(opened);
    await page.getByText("A file is the master of this catalog.").waitFor();
    await buttonOf(page)("Start from what is in force").click();
    await buttonOf(page)("Check").click();
    await page.getByText("It offers the same as what is in force.").waitFor();
    expect(await buttonOf(page)("Put in force").count()).toBe(0);
    expect(await lookFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
