import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { type CatalogObject, chat } from "../e2e/catalog.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const adminToken = "operator-token-of-the-stored-keys";
const shipped = await readFile(new URL("../../deploy/catalog.yaml", import.meta.url), "utf8");
const screen = "/console/operator/catalog";
const [firstKey, secondKey] = ["crab-first-key-000000-aaaa", "crab-second-key-00000-bbbb"];

describe.skipIf(chromiumPath === undefined)("an operator without a shell", () => {
  const opened = startConsole({
    ...{ catalog: shipped, isCatalogStored: true },
    env: { GENMESH_ADMIN_TOKEN: adminToken },
  });
  let page: Page;
  let faults: readonly string[];
  beforeAll(async () => {
    ({ page, faults } = await openPage(opened.browser));
    page.setDefaultTimeout(15_000);
    await signIn(page, opened.origin, adminToken);
    await visit(page, opened.origin, screen);
  });
  const press = (name: string) => page.getByRole("button", { name, exact: true }).first().click();
  const dialog = () => page.locator("dialog[open]").last();
  const confirm = async () => {
    await page.getByLabel("Your admin token").fill(adminToken);
    await press("Confirm");
  };
  const row = () => page.getByRole("row").filter({ hasText: "rented" });
  const submit = (name: string) => dialog().getByRole("button", { name, exact: true }).click();

  test("stores a key, adds an upstream and a model, and a chat is answered with that key", async () => {
    await page.getByText("No key is stored here").waitFor();
    await press("Store a key");
    await dialog().getByLabel("Name").fill("rented");
    await dialog().getByLabel("Key", { exact: true }).fill(` ${firstKey} `);
    expect(await lookFindings(page)).toEqual([]);
    await submit("Store key");
    await confirm();
    await row().getByText("…aaaa").waitFor();
    expect(await row().textContent()).toContain("none");
    expect(await lookFindings(page)).toEqual([]);

    await press("Edit what is in force");
    const text = page.getByLabel("Catalog (YAML)");
    const catalog = parse(await text.inputValue()) as CatalogObject;
    const { baseUrl } = opened.world.upstream;
    const rented = { protocol: "openai", baseUrl, apiKeyStored: "rented" };
    const upstreams = { ...catalog.upstreams, rented };
    const models = [...catalog.models, chat("rented-chat", { upstream: "rented" })];
    await text.fill(stringify({ ...catalog, upstreams, models }));
    await press("Check");
    await press("Put in force");
    await submit("Put in force");
    await confirm();
    await page.getByText("In force: version 1").waitFor();
    await row().getByText("rented", { exact: true }).last().waitFor();
    await page.getByText("stored:rented").first().waitFor();

    const seen = opened.world.play();
    const caller = await opened.world.caller();
    const ask = () => caller.post("/responses", { model: "rented-chat", input: "Hi" });
    await expect.poll(async () => (await ask()).status).toBe(200);
    expect(seen.at(-1)?.headers.authorization).toBe(`Bearer ${firstKey}`);

    await row().getByRole("button", { name: "Replace" }).click();
    await dialog().getByLabel("Key", { exact: true }).fill(secondKey);
    await submit("Replace key");
    await confirm();
    await row().getByText("…bbbb").waitFor();
    const used = async () => {
      await ask();
      return seen.at(-1)?.headers.authorization;
    };
    await expect.poll(used).toBe(`Bearer ${secondKey}`);
    await page.getByText("In force: version 1").waitFor();
  });

  test("deletes no key that is in use, and the page never has a key", async () => {
    await row().getByRole("button", { name: "Delete" }).click();
    await submit("Delete key");
    await confirm();
    await page.getByText("The catalog in force uses this key for rented.").waitFor();
    await press("Cancel");
    await row().getByText("…bbbb").waitFor();
    expect(await page.content()).not.toContain("crab-");
    const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    expect(kept).not.toContain("crab-");
    expect(faults).toEqual([]);
  });
});

describe.skipIf(chromiumPath === undefined)("an installation without a secret", () => {
  const opened = startConsole({
    ...{ catalog: shipped, isCatalogStored: true },
    env: { GENMESH_ADMIN_TOKEN: adminToken, GENMESH_SECRETS_KEY: "off" },
  });

  test("says that stored keys are off, and which variable turns them on", async () => {
    const { page, faults } = await openPage(opened.browser);
    await signIn(page, opened.origin, adminToken);
    await visit(page, opened.origin, screen);
    await page.getByText("Stored keys are off").waitFor();
    await page.getByText("GENMESH_SECRETS_KEY").waitFor();
    expect(await page.getByRole("button", { name: "Store a key" }).count()).toBe(0);
    expect(await lookFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
