import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "../e2e/caller.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { axeFindings, chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import {
  accountMark,
  everyLook,
  keyScreens,
  lookFindings,
  openConsoleMs,
  operatorScreens,
  signIn,
  unreachedByTab,
  untilBuilt,
  visit,
} from "./screens.ts";

const operatorToken = "operator-token-of-the-console-tests";

describe.skipIf(chromiumPath === undefined)("the console's screens in a browser", () => {
  oneProcessOnly();

  let world: World;
  let browser: Browser;
  let owner: Caller;
  let origin: string;

  beforeAll(async () => {
    world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: operatorToken } });
    origin = new URL(world.baseUrl).origin;
    const begun = await world.caller({ credits: 1_000n });
    owner = await world.withKey(begun, {
      name: "owner",
      scopes: Object.values(Scope).filter((scope) => typeof scope === "number" && scope > 0),
    });
    await owner.post("/responses", { model: "chat-1", input: "Hello" });
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  for (const [role, screens] of Object.entries({ key: keyScreens, operator: operatorScreens })) {
    describe(`of ${role === "key" ? "a key" : "the operator"}`, () => {
      let opened: Awaited<ReturnType<typeof openPage>>;

      beforeAll(async () => {
        opened = await openPage(browser);
        await signIn(opened.page, origin, role === "key" ? owner.key : operatorToken);
      });
      afterAll(() => opened?.close());

      test.each(screens)(
        "%s: nothing for axe, no fault, nothing too wide, all by Tab",
        async (path) => {
          const { page, faults } = opened;
          await visit(page, origin, path.replace(accountMark, owner.accountId));
          const findings = await lookFindings(page, everyLook);
          expect(await page.locator("h1").textContent()).not.toBe("Not found");
          expect(findings).toEqual([]);
          expect(await unreachedByTab(page)).toEqual([]);
          expect(faults).toEqual([]);
        },
      );
    });
  }

  test("the sign-in page: nothing for axe, and one message for every wrong secret", async () => {
    const { page, faults, close } = await openPage(browser);
    await page.goto(`${origin}/console/keys`);
    await page.locator("input[name=secret]").fill("gm_wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    expect(await lookFindings(page, everyLook)).toEqual([]);
    expect(faults).toEqual([]);
    await close();
  });

  test("a list page asks for its list once, and for names of keys at most once", async () => {
    const { page, close } = await openPage(browser);
    await signIn(page, origin, owner.key);
    // Waits for the requests of the first page itself.
    await page.waitForLoadState("networkidle");
    const lists = [
      "keys",
      "requests",
      "jobs",
      "files",
      "billing",
      "billing?tab=holds",
      "billing?tab=alerts",
      "webhooks",
      "models",
    ];
    const asked: Record<string, string[]> = {};
    for (const list of lists) {
      const requests: string[] = [];
      const note = (request: { url(): string }) => {
        const { pathname } = new URL(request.url());
        if (pathname.startsWith("/console/api/v1")) requests.push(pathname);
      };
      page.on("request", note);
      await visit(page, origin, `/console/${list}`);
      page.off("request", note);
      asked[list] = requests;
    }
    const names = "/console/api/v1/keys";
    for (const [list, requests] of Object.entries(asked)) {
      const others = list === "keys" ? requests : requests.filter((path) => path !== names);
      expect(others, list).toHaveLength(1);
      expect(requests.filter((path) => path === names).length).toBeLessThanOrEqual(1);
    }
    await close();
  });

  test("by keyboard alone: sign in, make a key, copy its secret, sign out", async () => {
    const { page, faults, close } = await openPage(browser);
    const { keyboard } = page;
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
    const tabTo = async (text: string) => {
      for (let steps = 0; steps < 60; steps += 1) {
        await keyboard.press("Tab");
        if ((await focused()) === text) return;
      }
      throw new Error(`Tab does not reach ${text}`);
    };
    await page.goto(`${origin}/console/`);
    await page.locator("input[name=secret]:focus").waitFor();
    await keyboard.type(owner.key);
    await keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await tabTo("Keys");
    await keyboard.press("Enter");
    await page.locator("h1:focus", { hasText: "Keys" }).waitFor();
    await tabTo("Create a key");
    await keyboard.press("Enter");
    await page.getByLabel("Name").and(page.locator(":focus")).waitFor();
    await keyboard.type("by keyboard");
    await keyboard.press("Enter");
    await page.getByLabel("Your API key").and(page.locator(":focus")).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await keyboard.type("not it");
    await keyboard.press("Enter");
    await page.getByText("This is not the API key of your session.").waitFor();
    await keyboard.type(owner.key);
    await keyboard.press("Enter");
    await page.getByText("The secret of by keyboard").waitFor();
    await tabTo("Copy");
    await keyboard.press("Enter");
    const secret = await page.evaluate(() => navigator.clipboard.readText());
    expect((await world.holding(secret).get("/models")).status).toBe(200);
    await tabTo("I have copied it");
    await keyboard.press("Enter");
    await page.getByRole("rowheader", { name: "by keyboard" }).waitFor();
    await tabTo("Sign out");
    await keyboard.press("Enter");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(faults).toEqual([]);
    await close();
  });

  test("a session that has ended leads to the sign-in form, which says so, and back", async () => {
    const { page, close } = await openPage(browser);
    await signIn(page, origin, owner.key);
    await visit(page, origin, "/console/models?kind=chat");
    await page.context().clearCookies();
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByText("Your session has ended").waitFor();
    await page.locator("input[name=secret]").fill(owner.key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await close();
  });
});
