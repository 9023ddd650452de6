import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import type { MediaWorld } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { browserNote, chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { keyOpenings, type Opening, operatorOpenings } from "./openings.ts";
import {
  accountMark,
  asksNothing,
  keyScreens,
  lookFindings,
  openConsoleMs,
  operatorScreens,
  signIn,
  untilBuilt,
  visit,
} from "./screens.ts";
import { everyScope, startUsedWorld, type UsedWorld } from "./used-world.ts";

const operatorToken = "operator-token-of-the-states-tests";
/** Lists that can be empty. For operators, also those that filters make empty. */
const emptyOfKey = [
  "requests",
  "jobs",
  "files",
  "billing",
  "billing?tab=holds",
  "webhooks",
  "usage",
];
const emptyOfOperator = [
  "accounts?query=none",
  "keys?query=none",
  "jobs?account=acct_none",
  "holds?account=acct_none",
  "audit?account=acct_none",
];

describe.skipIf(chromiumPath === undefined)(`what screens may show${browserNote}`, () => {
  oneProcessOnly();

  let used: UsedWorld;
  let made: MediaWorld;
  let browser: Browser;
  let owner: Caller;
  let origin: string;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    used = await startUsedWorld(operatorToken);
    ({ made, owner, origin } = used);
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await used?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    opened = await openPage(browser);
    page = opened.page;
  });
  afterEach(() => opened?.close());

  const see = (path: string) => visit(page, origin, path.replace(accountMark, owner.accountId));
  const check = async (what: string) => {
    expect(await lookFindings(page), what).toEqual([]);
    expect(opened.faults, what).toEqual([]);
  };
  const secretOf = (role: string) => (role === "key" ? owner.key : operatorToken);
  const roles = ["key", "operator"] as const;

  const openings = { key: keyOpenings, operator: operatorOpenings };
  test.each(roles.flatMap((role) => openings[role].map((one) => [role, one.name, one] as const)))(
    "opened by the %s: %s: nothing for axe, no fault",
    async (role, name, one: Opening) => {
      if (name === "menu") await page.setViewportSize({ width: 390, height: 900 });
      await signIn(page, origin, secretOf(role));
      await see(one.path);
      await one.open(page);
      await check(name);
    },
  );

  test("a key's secret, which is shown once: nothing for axe", async () => {
    await signIn(page, origin, owner.key);
    await see("/console/keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("website");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Your API key").fill(owner.key);
    await page.keyboard.press("Enter");
    await page.getByText("The secret of website").waitFor();
    await check("the secret");
    // The secret cannot be shown again. So the key that closes other dialogs leaves this one open.
    await page.keyboard.press("Escape");
    await page.getByText("The secret of website").waitFor();
  });

  test.each([
    ["key", "/console/jobs", "#job .facts"],
    ["operator", "/console/operator/jobs", ".facts"],
  ] as const)("a job is found by its id, by the %s", async (role, path, facts) => {
    const { id } = (await owner.get("/jobs")).json.data[0];
    await signIn(page, origin, secretOf(role));
    await see(`${path}?status=queued`);
    await page.getByLabel("Find by id").fill(id);
    await page.keyboard.press("Enter");
    await page.locator(facts).waitFor();
    expect(new URL(page.url()).searchParams.get("id")).toBe(id);
    expect(opened.faults).toEqual([]);
  });

  test("a file is found by its id, and one that is not there is said in words", async () => {
    const { id, filename } = (await owner.get("/files")).json.data[0];
    await signIn(page, origin, owner.key);
    await see("/console/files");
    await page.getByLabel("Find by id").fill(id);
    await page.keyboard.press("Enter");
    const found = page.getByLabel("The file");
    await found.getByRole("img", { name: filename }).waitFor();
    expect(new URL(page.url()).searchParams.get("id")).toBe(id);
    await check("a file");
    await page.getByLabel("Find by id").fill("file_none");
    await page.keyboard.press("Enter");
    await found.getByRole("alert").waitFor();
    expect(await found.getByRole("img").count()).toBe(0);
    await check("no file");
    await page.getByRole("link", { name: "All files" }).click();
    await page.getByRole("button", { name: `Delete ${filename}` }).waitFor();
  });

  const screens: Record<(typeof roles)[number], readonly string[]> = {
    key: keyScreens,
    operator: operatorScreens,
  };
  test.each(roles)(
    "of the %s, while the API refuses: said in words, nothing for axe",
    async (role) => {
      await signIn(page, origin, secretOf(role));
      const error = { message: "Billing does not answer. Try again.", code: "service_unavailable" };
      const headers = { "x-request-id": "req_1" };
      await page.route(/\/console\/api\/(v1|admin)\//, (route) =>
        route.fulfill({ status: 503, headers, json: { error } }),
      );
      for (const path of screens[role].filter((one) => !asksNothing.includes(one))) {
        await see(path);
        await page.getByRole("alert").getByText(error.message).first().waitFor();
        await check(path);
      }
    },
  );

  test("empty screens say what to do next, nothing for axe", async () => {
    const fresh = await made.world.caller({ usdMicros: 0n });
    const newcomer = await made.world.withKey(fresh, { name: "fresh", scopes: everyScope });
    await signIn(page, origin, newcomer.key);
    for (const name of emptyOfKey) {
      await see(`/console/${name}`);
      expect(await page.locator(".empty p:not(.empty-title)").textContent(), name).not.toBe("");
      await check(name);
    }
    await page.context().clearCookies();
    await signIn(page, origin, operatorToken);
    for (const name of emptyOfOperator) {
      await see(`/console/operator/${name}`);
      expect(await page.locator(".empty p:not(.empty-title)").textContent(), name).not.toBe("");
      await check(name);
    }
    await see("/console/nothing");
    await page.getByRole("heading", { name: "Not found" }).waitFor();
    await check("a page that is not there");
  });
});
