import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "../e2e/caller.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { browserNote, chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

const operatorToken = "operator-token-of-the-session-tests";

describe.skipIf(chromiumPath === undefined)(`sessions in a browser${browserNote}`, () => {
  oneProcessOnly();

  let world: World;
  let browser: Browser;
  let member: Caller;
  let owner: Caller;
  let origin: string;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: operatorToken } });
    origin = new URL(world.baseUrl).origin;
    const first = await world.caller();
    member = await world.withKey(first, { name: "member", scopes: [Scope.TEXT, Scope.MODELS] });
    const scopes = [Scope.TEXT, Scope.MODELS, Scope.KEYS];
    owner = await world.withKey(first, { name: "owner", scopes });
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    opened = await openPage(browser);
    page = opened.page;
  });
  afterEach(() => opened?.close());

  const passMinutes = (minutes: number) => world.setClock(minutes * 60_000);
  /** Sends a request below `/console/api` like the page. Answers the status. */
  const ask = (path: string) =>
    page.evaluate(async (url) => (await fetch(`/console/api${url}`)).status, path);
  const navigation = () => page.locator("nav[aria-label=Screens] a").allTextContents();

  const bounds = [
    ["a key's", () => owner.key, { use: "/v1/models", link: "Keys", idle: 30, whole: 8 * 60 }],
    [
      "an operator's",
      () => operatorToken,
      { use: "/admin/accounts", link: "Audit log", idle: 15, whole: 4 * 60 },
    ],
  ] as const;

  test.each(bounds)(
    "%s ends when it was not used, which the page says",
    async (_of, secret, of) => {
      await signIn(page, origin, secret());
      // Each use starts the time again. It is stored with a precision of a minute.
      for (let turn = 0; turn < 3; turn += 1) {
        passMinutes(of.idle - 2);
        expect(await ask(of.use)).toBe(200);
      }
      passMinutes(of.idle);
      await page.getByRole("link", { name: of.link, exact: true }).click();
      await page.getByText("Your session has ended").waitFor();
      expect(await ask(of.use)).toBe(401);
    },
  );

  test.each(bounds)("%s ends after its hours, however much it is used", async (_of, secret, of) => {
    await signIn(page, origin, secret());
    const step = of.idle - 3;
    let passed = step;
    for (; passed < of.whole; passed += step) {
      passMinutes(step);
      expect(await ask(of.use), `after ${passed} minutes`).toBe(200);
    }
    passMinutes(step);
    await page.getByRole("link", { name: of.link, exact: true }).click();
    await page.getByText("Your session has ended").waitFor();
    expect(await ask(of.use)).toBe(401);
  });

  test("a member sees what its key may do, and is told where it may not", async () => {
    await signIn(page, origin, member.key);
    await page.getByText(/^May use (text, models|models, text)$/).waitFor();
    const places = await navigation();
    expect(places).toContain("Playground");
    for (const other of ["Keys", "Billing", "Files", "Accounts"]) {
      expect(places).not.toContain(other);
    }
    expect(await ask("/v1/keys")).toBe(403);
    expect(await ask("/admin/accounts")).toBe(403);
    await visit(page, origin, "/console/keys");
    await page.getByRole("alert").waitFor();
    await visit(page, origin, "/console/operator/accounts");
    await page.getByRole("heading", { name: "Not found" }).waitFor();
    expect(opened.faults).toEqual([]);
  });

  test("an owner sees every key of the account, and nothing of the operators'", async () => {
    await signIn(page, origin, owner.key);
    await visit(page, origin, "/console/keys");
    await page.getByRole("rowheader", { name: "member" }).waitFor();
    expect(await ask("/admin/accounts")).toBe(403);
    expect(opened.faults).toEqual([]);
  });

  test("an operator has the operators' screens, and no key's", async () => {
    await signIn(page, origin, operatorToken);
    const places = await navigation();
    expect(places).toContain("Accounts");
    expect(places).not.toContain("Playground");
    expect(await ask("/admin/accounts")).toBe(200);
    expect(await ask("/v1/models")).toBe(403);
    expect(opened.faults).toEqual([]);
  });

  // This test is the last, because the address must wait after it.
  test("after ten wrong secrets the form says to wait, for the right one too", async () => {
    await page.goto(`${origin}/console/`);
    await page.locator("input[name=secret]").waitFor();
    // All at once, because they count for a minute.
    const answers = await page.evaluate(() => {
      const trySecret = async (_: unknown, turn: number) => {
        const secret = turn % 2 === 0 ? `gm_wrong_${turn}` : `no token ${turn}`;
        const headers = { "content-type": "application/json" };
        const body = JSON.stringify({ secret });
        const answer = await fetch("/console/api/session", { method: "POST", headers, body });
        return `${answer.status} ${(await answer.json()).error.message}`;
      };
      return Promise.all(Array.from({ length: 10 }, trySecret));
    });
    expect([...new Set(answers)]).toEqual([expect.stringMatching(/^401 /)]);
    await page.locator("input[name=secret]").fill(owner.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("Wait a minute.").waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });
});
