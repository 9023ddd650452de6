import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import {
  ended,
  type MediaWorld,
  pausedWebhooks,
  startMediaWorld,
  submit,
} from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { lookFindings, openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

const adminToken = "operator-token-of-the-operators-day";

/** The first upstream of this model is the scripted one, the second renders. */
const backedImage = {
  ...{ id: "backed-image", kind: "image", upstream: "scripted", fallbackUpstreams: ["studio"] },
  ...{ creditPrice: 1, sizes: ["64x64"] },
};

const perToken = (micros: number) => micros * 1_000_000;
const prices = {
  inputUsdMicrosPerMillionTokens: perToken(2),
  cacheWriteUsdMicrosPerMillionTokens: perToken(3),
  outputUsdMicrosPerMillionTokens: perToken(10),
};
/** A model with prices of several parts, and with the operator's own prices. */
const priced = chat("priced", {
  fallbackUpstreams: ["backup"],
  pricing: {
    ...prices,
    longInput: [
      { aboveInputTokens: 9_000, ...prices, outputUsdMicrosPerMillionTokens: perToken(20) },
    ],
    servedTiers: { flex: 50 },
    toolCalls: { web_search: 10_000 },
    upstreamCost: {
      inputUsdMicrosPerMillionTokens: perToken(1),
      outputUsdMicrosPerMillionTokens: perToken(4),
    },
  },
});

describe.skipIf(chromiumPath === undefined)("what operators do in the console", () => {
  oneProcessOnly();

  let owned: MediaWorld;
  let origin: string;
  let browser: Browser;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    owned = await startMediaWorld({
      env: { GENMESH_ADMIN_TOKEN: adminToken },
      models: [backedImage, priced],
    });
    origin = new URL(owned.world.baseUrl).origin;
    await untilBuilt(origin);
    browser = await openBrowser();
    opened = await openPage(browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, origin, adminToken);
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await owned?.[Symbol.asyncDispose]();
  });

  const dialog = () => page.locator("dialog[open]").last();
  const button = (name: string) => page.getByRole("button", { name, exact: true }).first();
  const confirm = async () => {
    await page.getByLabel("Your admin token").fill(adminToken);
    await button("Confirm").click();
  };
  const fact = (name: string) =>
    page
      .locator(".fact")
      .filter({ has: page.getByText(name, { exact: true }) })
      .locator("dd");

  test("see why a job was turned away, which upstream took it, and what moved for it", async () => {
    const { world, media } = owned;
    const caller = await world.caller({ credits: 9n });
    media.next("POST /images/generations", { kind: "status", status: 402 });
    const job = await submit(caller, "images", { model: "backed-image", prompt: "a" });
    await ended(caller, job);
    await visit(page, origin, `/console/operator/jobs?id=${job.id}`);
    expect(await fact("Upstream").textContent()).toBe("studio");
    expect(await fact("Waits").textContent()).toBe(
      "our account at the upstream is empty (1 in all)",
    );
    await page.getByRole("button", { name: "settle", exact: true }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  test("see all prices of a model, where it is served, and what it earned", async () => {
    const { world } = owned;
    const caller = await world.caller({ usdMicros: 1_000_000n });
    // 10 tokens in, 5 out: charged 10 × 2 + 5 × 10, and paid 10 × 1 + 5 × 4.
    await caller.post("/responses", { model: "priced", input: "Hi" });
    await caller.settled();
    await visit(page, origin, "/console/operator/catalog");
    const card = page.locator("article").filter({ has: page.getByText("priced", { exact: true }) });
    const factOf = (name: string) =>
      card
        .locator(".facts")
        .first()
        .locator(".fact")
        .filter({ has: page.getByText(name, { exact: true }) })
        .locator("dd");
    for (const [name, value] of [
      ["Input", "$2.00 per million"],
      ["Cache write", "$3.00 per million"],
      ["Output, above 9,000 of input", "$20.00 per million"],
      ["Tier flex", "50 %"],
      ["A call of web_search", "$0.01"],
    ] as const) {
      expect(await factOf(name).textContent(), name).toBe(value);
    }
    await card.getByText("Your cost").click();
    const lanes = card.locator(".lanes li");
    expect(await lanes.nth(0).textContent()).toContain("key in UP_KEY");
    expect(await lanes.nth(1).textContent()).toContain("backup if others fail");
    await lanes.nth(0).getByText("healthy").waitFor();
    expect(await lookFindings(page)).toEqual([]);

    await visit(page, origin, `/console/operator/margin?range=1d&account=${caller.accountId}`);
    const row = page.getByRole("row").filter({ hasText: "priced" });
    const cells = row.locator("td");
    const values = async () =>
      await cells
        .locator("data")
        .evaluateAll((all) => all.map((one) => Number(one.getAttribute("value"))));
    await row.waitFor();
    expect(await values()).toEqual([1, 70, 1, 70, 30, 40]);
    await page.getByLabel("By").selectOption("day");
    await page.getByRole("columnheader", { name: "Day (UTC)" }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  test("ask an upstream whether its key works, and which models it has", async () => {
    const { world } = owned;
    await visit(page, origin, "/console/operator/upstreams");
    const list = { object: "list", data: [{ id: "up-model" }, { id: "another" }] };
    world.play({ kind: "json", body: list });
    await page.getByRole("button", { name: "Probe main", exact: true }).click();
    await dialog().getByText("It answers, and differs from the catalog.").waitFor();
    await dialog().getByText("Models that it lists (2)").click();
    await dialog().getByText("another", { exact: true }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    world.play({ kind: "status", status: 401 });
    await button("Ask again").click();
    await dialog().getByText("its list of models answers 401").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    world.play();
    await button("Close").click();
    expect(opened.faults).toEqual([]);
  });

  test("see an upstream's errors and times of the day and the week", async () => {
    const { world } = owned;
    const caller = await world.caller();
    world.play();
    world.upstream.next({ kind: "status", status: 500 });
    for (const _ of [1, 2]) {
      await caller.post("/responses", { model: "scripted", input: "Hi", stream: true });
    }
    await visit(page, origin, "/console/operator/upstreams");
    const history = page.getByRole("table", { name: "Upstreams in this time" });
    const main = history.getByRole("row", { name: "main" }).first();
    await main.getByText("server_error").waitFor();
    await main.getByRole("img", { name: "Requests of main an hour" }).waitFor();
    await page.getByLabel("By").selectOption("model");
    const ofModel = history.getByRole("row", { name: "main scripted" });
    await ofModel.getByText("server_error").waitFor();
    await page.getByLabel("Time").selectOption("week");
    await ofModel.getByText("server_error").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  test("find a failed request by its id, and all that failed at an upstream", async () => {
    const { world } = owned;
    const caller = await world.caller();
    world.play();
    world.upstream.next({ kind: "status", status: 429 });
    const failed = await caller.post("/responses", { model: "scripted", input: "Hi" });
    const requestId = failed.headers.get("x-request-id") ?? "";
    await until("the request to be counted", async () => {
      const answer = await page.request.get(
        `${origin}/console/api/admin/requests?account=${caller.accountId}`,
      );
      return (await answer.json()).data.length > 0;
    });
    await visit(page, origin, "/console/operator/requests");
    await page.getByLabel("Find by id").fill(requestId);
    await button("Find").click();
    await page.getByText("main: rate_limited (429)").waitFor();
    await page.getByRole("link", { name: caller.accountId }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.getByRole("link", { name: "All requests" }).click();
    await page.getByLabel("Account", { exact: true }).fill(caller.accountId);
    await page.getByLabel("Upstream", { exact: true }).fill("main");
    await page.getByLabel("Status").selectOption("failed");
    const row = page.getByRole("row").filter({ hasText: "rate_limited" });
    await row.waitFor();
    await page.getByLabel("Ended").selectOption("Custom");
    await page.getByLabel("From (").fill("2099-01-01T00:00");
    await page.getByText("No requests here").waitFor();
    await page.getByLabel("From (").fill("2020-01-01T00:00");
    await row.getByRole("link").nth(1).click();
    await page.getByRole("link", { name: "Its requests" }).waitFor();
    expect(opened.faults).toEqual([]);
  });

  test("make a key with all its bounds, change it, disable and enable it", async () => {
    const { world } = owned;
    const { accountId } = await world.caller();
    await visit(page, origin, `/console/operator/keys?account=${accountId}`);
    await button("Create a key").click();
    await dialog().getByLabel("Name", { exact: true }).fill("the shop");
    await dialog().getByLabel("scripted", { exact: true }).check();
    await dialog().getByLabel("Requests a minute").fill("7");
    await dialog().getByLabel("Last day (UTC)").fill("2099-12-31");
    await dialog().getByLabel("Webhook", { exact: true }).fill("https://receiver.example/hooks");
    await button("Create key").click();
    await confirm();
    await page.getByText("The secret of the shop").waitFor();
    const secret = (await page.locator("dialog[open] .secret code").textContent()) ?? "";
    await button("I have copied it").click();
    const known = async () => {
      const { keys } = await world.admin.auth.listKeys({ accountId });
      return keys.find(({ secretHint }) => secret.endsWith(secretHint));
    };
    expect(await known()).toMatchObject({
      ...{ name: "the shop", allowedModels: ["scripted"], requestsPerMinute: 7 },
      ...{ webhookUrl: "https://receiver.example/hooks", scopes: [] },
    });

    const row = page.getByRole("row").filter({ hasText: "the shop" });
    await row.getByText(`...${secret.slice(-4)}`).waitFor();
    await row.getByRole("button", { name: "Edit" }).click();
    expect(await dialog().getByLabel("Last day (UTC)").inputValue()).toBe("2099-12-31");
    await dialog().getByLabel("Name", { exact: true }).fill("the shop in town");
    await dialog().getByLabel("Limit in US dollars").fill("1.5");
    await dialog().getByLabel("The limit begins anew").selectOption("weekly");
    await dialog().getByLabel("Alert below a balance of").fill("2");
    expect(await lookFindings(page)).toEqual([]);
    await button("Save changes").click();
    await confirm();
    await page.getByRole("row").filter({ hasText: "this week" }).waitFor();
    const changed = await known();
    expect(changed).toMatchObject({ name: "the shop in town", monthlyUsdMicrosLimit: 1_500_000n });
    // Only the changed fields differ.
    expect(changed).toMatchObject({
      allowedModels: ["scripted"],
      requestsPerMinute: 7,
      scopes: [],
    });
    const { keys } = await world.admin.billing.getKeyUsage({
      ...{ accountId, keyIds: [changed?.keyId ?? ""] },
    });
    expect(keys[0]?.lowBalanceUsdMicros).toBe(2_000_000n);

    const app = world.holding(secret, { accountId, keyId: changed?.keyId ?? "" });
    await row.getByRole("button", { name: "Disable" }).click();
    await button("Disable key").click();
    await confirm();
    await until("it to be refused", async () => (await app.get("/models")).status === 401);
    await row.getByRole("button", { name: "Enable" }).click();
    await confirm();
    await until("it to be taken", async () => (await app.get("/models")).status === 200);
    expect(opened.faults).toEqual([]);
  });

  test("send a webhook of an account again, set its alerts, download its entries", async () => {
    const { world } = owned;
    const caller = await world.caller({ usdMicros: 2_000_000n, credits: 9n });
    const { accountId } = caller;
    // Webhooks to this machine's own addresses are not delivered, so this one stays pending.
    const webhookUrl = "http://127.0.0.1:9/hooks";
    const order = { model: "small-image", prompt: "a", webhookUrl };
    await ended(caller, await submit(caller, "images", order));
    const webhook = async () => {
      const { webhooks } = await world.admin.media.listAccountWebhooks({ accountId });
      return webhooks[0];
    };
    await until("its first try", async () => (await webhook())?.lastError);
    const [paused] = await pausedWebhooks(world, accountId);
    const again = (paused?.attempts ?? 0) + 1;

    const path = `/console/operator/accounts/${accountId}`;
    await visit(page, origin, path);
    const text = async (name: string) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name, exact: true }).click(),
      ]);
      return (await readFile(await download.path(), "utf8")).trim().split(/\r?\n/);
    };
    const csv = await text("Download CSV");
    expect(csv[0]).toMatch(/^id,createdAt,kind,unit,amount,balanceAfter,/);
    expect(csv).toHaveLength(4);
    expect((await text("Download JSON lines")).map((line) => JSON.parse(line).kind)).toEqual([
      ...["charge", "grant", "grant"],
    ]);
    await page.getByLabel("To the end of (UTC)").fill("2020-01-01");
    expect(await text("Download CSV")).toEqual([csv[0]]);
    expect(await lookFindings(page)).toEqual([]);

    await button("Webhooks").click();
    await page.getByRole("row").filter({ hasText: "unsafe" }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await button("Send again").click();
    await until("another try", async () => (await webhook())?.attempts === again);

    await button("Alerts").click();
    await page.getByLabel("Alert below a balance of").fill("1.25");
    await page.getByLabel("Webhook", { exact: true }).fill("https://receiver.example/low");
    expect(await lookFindings(page)).toEqual([]);
    await button("Save alerts").click();
    await page.getByText("Saved. It counts from now on.").waitFor();
    expect(await world.admin.billing.getAlerts({ accountId })).toMatchObject({
      ...{ lowBalanceUsdMicros: 1_250_000n, webhookUrl: "https://receiver.example/low" },
    });
    await visit(page, origin, `${path}?tab=alerts`);
    expect(await page.getByLabel("Alert below a balance of").inputValue()).toBe("1.25");
    expect(opened.faults).toEqual([]);
  });
});
