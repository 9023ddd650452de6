import { readFile } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { openConsoleMs, untilBuilt } from "./screens.ts";
import { openTab, type Tab } from "./tab.ts";

const adminToken = "operator-token-of-the-operators-whole-day";
const shipped = await readFile(new URL("../../deploy/catalog.yaml", import.meta.url), "utf8");

const price = (outputMicros: number) =>
  `outputUsdMicrosPerMillionTokens: ${outputMicros} # harbour`;
/** Micros of a token of output: 5 come with each answer. */
const [usualPrice, dearPrice] = [4_000_000, 6_000_000];
/** Micros of an answer of 10 tokens in and 5 out, by the two prices. */
const [usualCharge, dearCharge] = [10 + 5 * 4, 10 + 5 * 6];

/** The text of before with another upstream and a model there, as an operator would type them. */
function withHarbour(text: string, baseUrl: string): string {
  const upstream = `  harbour: { protocol: openai, baseUrl: "${baseUrl}", apiKeyEnv: UP_KEY }\n`;
  const model = `
  - id: harbour-chat
    kind: chat
    name: Harbour Chat
    upstream: harbour
    upstreamModel: up-model
    maxInputTokens: 20000
    maxOutputTokens: 1000
    safetyMarginTokens: 100
    inputModalities: [text]
    pricing:
      inputUsdMicrosPerMillionTokens: 1000000
      ${price(usualPrice)}
`;
  return text.replace("upstreams:\n", `upstreams:\n${upstream}`).concat(model);
}

describe.skipIf(chromiumPath === undefined)("an operator's day, without a shell", () => {
  oneProcessOnly();

  let world: World;
  let browser: Browser;
  let tab: Tab;
  let page: Tab["page"];
  let origin: string;
  /** An application of the account that the operator makes. */
  let application: Caller;

  beforeAll(async () => {
    world = await startWorld({
      ...{ catalog: shipped, isCatalogStored: true },
      env: { GENMESH_ADMIN_TOKEN: adminToken },
    });
    origin = new URL(world.baseUrl).origin;
    await untilBuilt(origin);
    browser = await openBrowser();
    tab = await openTab(browser);
    page = tab.page;
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  const text = () => page.getByLabel("Catalog (YAML)");
  const putInForce = async (note: string) => {
    await tab.press("Put in force");
    await tab.dialog().getByLabel("Note").fill(note);
    await tab.press("Put in force");
    await tab.confirm(adminToken);
    await tab.row(note).getByText("in force").waitFor();
  };
  const ask = () => application.post("/responses", { model: "harbour-chat", input: "Hello" });
  const charged = async () => (await ask()).json.usage?.costUsdMicros;
  const figure = (name: string) =>
    page.locator(".figure").filter({ has: page.getByText(name, { exact: true }) });

  test("adds an upstream and a model, and sees that its key works", async () => {
    await tab.signIn(origin, adminToken, "Accounts");
    await tab.go("Catalog");
    await tab.press("Edit what is in force");
    const before = await text().inputValue();
    await text().fill(withHarbour(before, world.upstream.baseUrl));
    await tab.press("Check");
    for (const added of ["harbour-chat", "upstream harbour"]) {
      const line = page.locator("li").filter({ has: page.getByText(added, { exact: true }) });
      await line.getByText("added").waitFor();
    }
    await expect.poll(tab.focused).toBe("Check");
    await putInForce("the harbour's model");
    await page.locator("article", { hasText: "harbour-chat" }).getByText("unknown").waitFor();
    await expect.poll(tab.focused).toBe("Catalog");

    await tab.go("Upstreams");
    world.play({ kind: "json", body: { object: "list", data: [{ id: "up-model" }] } });
    await page.getByRole("button", { name: "Probe harbour", exact: true }).click();
    await tab.dialog().getByText("The key works. It has the model of the catalog there.").waitFor();
    await tab.press("Close");
    await expect.poll(tab.focused).toBe("Probe harbour");
    expect(world.upstream.requests[0]?.headers.authorization).toBe("Bearer up-key-5f2c9d");
    world.play();
  });

  test("makes an account, whose application asks the new model", async () => {
    await tab.go("Accounts");
    await tab.press("Make an account");
    await tab.dialog().getByLabel("Name", { exact: true }).fill("Harbour Works");
    await tab.dialog().getByLabel("Dollars to begin with").fill("1");
    await tab.press("Make account");
    await page.getByLabel("Your admin token").fill(adminToken);
    await tab.press("Confirm");
    await page.getByText("Harbour Works’s first key").waitFor();
    const secret = await tab.dialog().locator(".secret code").textContent();
    await tab.press("I have copied it");
    await tab.row("Harbour Works").waitFor();
    await expect.poll(tab.focused).toBe("Make an account");
    application = world.holding(secret ?? "");
    expect(await charged()).toBe(usualCharge);
  });

  test("sees why a request of the account failed, by the id that its caller has", async () => {
    world.upstream.next({ kind: "status", status: 401 });
    const failed = await ask();
    expect(failed.json.error.code).toBe("model_request_failed");
    await tab.go("Requests");
    // It is looked for again until it is counted.
    await page.getByLabel("Find by id").fill(failed.headers.get("x-request-id") ?? "");
    await tab.press("Find");
    await page.getByText("harbour: key_refused (401)").waitFor();
    await page.getByText("The model did not complete the request.").first().waitFor();
    await page.getByRole("link", { name: /^acct_/ }).click();
    await page.getByRole("heading", { level: 1, name: "Harbour Works" }).waitFor();
    await figure("Dollars charged").getByText("$0.00003", { exact: true }).first().waitFor();
    const [{ id }] = (await application.get("/requests?status=completed")).json.data;
    await page.getByRole("link", { name: "Its requests" }).click();
    await tab.row(id.slice(-8)).getByText("completed").waitFor();
  });

  test("changes a price, which new requests pay, and rolls it back", async () => {
    await tab.go("Catalog");
    await tab.press("Edit what is in force");
    const before = await text().inputValue();
    await text().fill(before.replace(price(usualPrice), price(dearPrice)));
    await tab.press("Check");
    await page.getByText("It changes 1 of them.").waitFor();
    await page.locator(".diff ins", { hasText: `"${dearPrice}"` }).waitFor();
    await putInForce("dearer output");
    await page.locator("article", { hasText: "harbour-chat" }).getByText("$6.00").waitFor();
    await until("the new price", async () => (await charged()) === dearCharge);

    await page.getByRole("button", { name: "Roll back to version 1" }).click();
    await tab
      .dialog()
      .locator(".diff ins", { hasText: `"${usualPrice}"` })
      .waitFor();
    await tab.dialog().getByLabel("Note").fill("too dear");
    await tab.press("Roll back");
    await tab.confirm(adminToken);
    await page.getByText("In force: version 3").waitFor();
    await until("the price of before", async () => (await charged()) === usualCharge);
  });

  test("gives the dear answer's money back, and suspends the account", async () => {
    await tab.go("Accounts");
    await page.getByRole("link", { name: "Harbour Works" }).click();
    const giveBack = page.getByRole("button", { name: "Refund", exact: true });
    const dear = tab.row("+$0.000040").filter({ has: giveBack });
    await dear.first().waitFor();
    const count = await dear.count();
    const before = await application.settled();
    await dear.first().getByRole("link", { name: /^req_/ }).waitFor();
    await dear.first().getByRole("button", { name: "Refund", exact: true }).click();
    await tab.press("Give back");
    await tab.confirm(adminToken);
    await page.getByText(/^gives back entry/).waitFor();
    await expect.poll(() => dear.count()).toBe(count - 1);
    expect((await application.settled()).available).toBe(before.available + dearCharge);
    await expect.poll(tab.focused).toBe("Harbour Works");

    await tab.press("Suspend");
    await tab.dialog().getByText("1 key").waitFor();
    await tab.press("Suspend account");
    await page.getByText(/^Suspended since .*: its keys may only read\./).waitFor();
    await expect.poll(tab.focused).toBe("Resume");
    await until("a refusal", async () => refusalOf(await ask()).includes("account_suspended"));
    await tab.press("Resume");
    await figure("State").getByText("active", { exact: true }).waitFor();
    await until("its keys to work again", async () => (await ask()).status === 200);
  });

  test("finds every act of the day in the audit log, and books that agree", async () => {
    await tab.go("Ledger audit");
    await tab.press("Audit now");
    await page.getByText("Every balance is the sum of its entries.").waitFor();
    await tab.go("Audit log");
    await tab.row("console.sign_in").first().waitFor();
    const acts = await page.locator("tbody tr").allTextContents();
    const named = ["account.resume", "account.suspend", "account.refund", "account.create"];
    for (const act of named) expect(acts.join("\n")).toContain(act);
    expect(acts.filter((act) => act.includes("catalog."))).toHaveLength(3);
    expect(tab.faults).toEqual([]);
  });
});
