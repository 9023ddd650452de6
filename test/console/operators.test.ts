import type { Page } from "playwright-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { authenticatorCode } from "../support/totp.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const adminToken = "operator-token-of-the-operators-by-name";
const password = "correct horse battery";

describe.skipIf(chromiumPath === undefined)("operators with a name", () => {
  const opened = startConsole({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
  let root: Awaited<ReturnType<typeof openPage>>;
  let own: Awaited<ReturnType<typeof openPage>>;
  let page: Page;
  beforeEach(async () => {
    root = await openPage(opened.browser);
    own = await openPage(opened.browser, { width: 390 });
    page = own.page;
    // A hash of a password takes seconds on a busy machine.
    for (const one of [root.page, page]) one.setDefaultTimeout(30_000);
    await signIn(root.page, opened.origin, adminToken);
  });
  afterEach(async () => {
    expect([...root.faults, ...own.faults]).toEqual([]);
    await root.close();
    await own.close();
  });

  /** Each code works once, so the clock goes on to the next one. */
  const nextCode = (uri: string) => {
    opened.world.setClock(30_000);
    return authenticatorCode(uri, opened.world.now());
  };
  /** The secret that the page shows for an authenticator, as a URI. */
  const shownUri = async () =>
    `otpauth://totp/x?secret=${await page.locator(".secret code").first().textContent()}`;
  const alert = (text: string) => page.getByRole("alert").getByText(text).first().waitFor();

  /** Adds an operator in the console. Answers the link that it shows. */
  async function addInConsole(name: string): Promise<string> {
    await visit(root.page, opened.origin, "/console/operator/operators");
    await root.page.getByRole("button", { name: "Add an operator" }).click();
    await root.page.getByRole("textbox", { name: "Name" }).fill(name);
    await root.page.getByRole("button", { name: "Add operator" }).click();
    await root.page.getByLabel("Your admin token").fill(adminToken);
    await root.page.getByRole("button", { name: "Confirm" }).click();
    const link = await root.page.locator(".secret code").textContent();
    expect(await lookFindings(root.page)).toEqual([]);
    await root.page.getByRole("button", { name: "I have copied it" }).click();
    return link ?? "";
  }

  /** Sets up an operator with the link. Answers the second factor and the recovery codes. */
  async function setUp(link: string) {
    await page.goto(link);
    await page.getByRole("img", { name: "QR code" }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    const uri = await shownUri();
    await page.getByLabel("New password").fill(password);
    await page.getByLabel("Code of the new").fill("000000");
    await page.getByRole("button", { name: "Set up" }).click();
    await alert("code");
    await page.getByLabel("Code of the new").fill(nextCode(uri));
    await page.getByRole("button", { name: "Set up" }).click();
    await page.getByRole("heading", { name: "You are set up" }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    const text = (await page.locator(".recovery-codes").textContent()) ?? "";
    await page.getByRole("link", { name: "Go to the sign-in" }).click();
    return { uri, recovery: text.split("\n") };
  }

  async function fillIn(name: string, word: string, code: string): Promise<void> {
    const byName = page.getByRole("button", { name: "Use an operator's name and password" });
    if (!(await page.getByLabel("Name").isVisible())) await byName.click();
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Password").fill(word);
    await page.getByLabel("Code").fill(code);
    await page.getByRole("button", { name: "Sign in" }).click();
  }
  const isIn = () => page.getByRole("heading", { name: "Accounts", level: 1 }).waitFor();
  async function signOut(): Promise<void> {
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  }

  test("are added, set up a second factor, and sign in with its code or a recovery code", async () => {
    const { uri, recovery } = await setUp(await addInConsole("anna@example.com"));
    expect(recovery).toHaveLength(10);
    await page.getByRole("button", { name: "Use an operator's name and password" }).click();
    await page.getByLabel("Code").waitFor();
    expect(await lookFindings(page)).toEqual([]);

    const code = nextCode(uri);
    await fillIn("anna@example.com", "wrong horse battery", code);
    await alert("Name, password or code is wrong");
    await fillIn("anna@example.com", password, "000000");
    await alert("Name, password or code is wrong");
    await fillIn("anna@example.com", password, code);
    await isIn();
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByText("anna@example.com").waitFor();
    await page.getByRole("button", { name: "Menu" }).click();

    // A code works once.
    await signOut();
    await fillIn("anna@example.com", password, code);
    await alert("Name, password or code is wrong");
    await fillIn("anna@example.com", password, recovery[0] ?? "");
    await isIn();

    await visit(root.page, opened.origin, "/console/operator/audit");
    await root.page.getByText("operator anna@example.com").first().waitFor();
  });

  test("give password and code before money is moved, and change their own second factor", async () => {
    const { uri } = await setUp(await addInConsole("ola"));
    await fillIn("ola", password, nextCode(uri));
    await isIn();
    await visit(page, opened.origin, "/console/operator/own");
    await page.getByRole("button", { name: "New recovery codes" }).click();
    await page.getByRole("button", { name: "Make new ones" }).click();
    await page.getByLabel("Your code").fill("000000");
    await page.getByLabel("Your password").fill(password);
    expect(await lookFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Confirm" }).click();
    await page.getByText("Password or code is wrong").waitFor();
    await page.getByLabel("Your password").fill(password);
    await page.getByLabel("Your code").fill(nextCode(uri));
    await page.getByRole("button", { name: "Confirm" }).click();
    await page.getByRole("button", { name: "I have kept them" }).click();

    // Nothing more is asked for some minutes.
    await page.getByRole("button", { name: "New authenticator" }).click();
    await page.getByRole("img", { name: "QR code" }).waitFor();
    const next = await shownUri();
    await page.getByLabel("Code of the new").fill(nextCode(next));
    await page.getByRole("button", { name: "Use the new one" }).click();
    await page.getByRole("button", { name: "I have kept them" }).click();

    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByLabel("New password").fill("another horse battery");
    await page.getByRole("dialog").getByRole("button", { name: "Change password" }).click();
    await page.getByText("Your session has ended").waitFor();
    await fillIn("ola", "another horse battery", nextCode(next));
    await page.getByRole("heading", { name: "My sign-in" }).waitFor();

    // Another operator disables this one.
    await visit(root.page, opened.origin, "/console/operator/operators");
    const row = root.page.getByRole("row", { name: /^ola/ });
    await row.getByRole("button", { name: "Disable" }).click();
    await root.page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await row.getByText("disabled").waitFor();
    await visit(page, opened.origin, "/console/operator/accounts");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await fillIn("ola", "another horse battery", nextCode(next));
    await alert("Name, password or code is wrong");
  });

  test("with a link that is over are told so", async () => {
    await page.goto(`${opened.origin}/console/set-up#name=anna&token=setup_none`);
    await alert("This link is not valid any more");
    expect(await lookFindings(page)).toEqual([]);
  });
});
