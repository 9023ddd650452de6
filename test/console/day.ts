import { readFile } from "node:fs/promises";
import { join } from "node:path";
import OpenAI from "openai";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../host/process.ts";
import { openBrowser, openPage } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

/** Real generations of the built-in upstream take a few seconds each, and longer on a busy machine. */
const generationMs = 120_000;
/** Milliseconds. The operators' page shows the last five minutes, so a request of this age is surely among them. */
const countedMs = 4 * 60_000;

// biome-ignore lint/suspicious/noExplicitAny: documents of every shape.
type Document = any;

/** A new installation for a day, without earlier requests. */
export interface DayWorld extends AsyncDisposable {
  /** Its address for a browser. */
  origin: string;
  /** The key of the first account. */
  key: string;
  adminToken: string;
}

/**
 * A day of a developer and an operator. They use everything in the console with the first key and the admin token. An application with
 * OpenAI's SDK runs beside it.
 */
export function aDayWithTheConsole(start: () => Promise<DayWorld>, startMs = openConsoleMs): void {
  let world: DayWorld;
  let browser: Browser;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    world = await start();
    await untilBuilt(world.origin);
    browser = await openBrowser();
  }, startMs);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  const open = async (secret: string) => {
    await opened?.close();
    opened = await openPage(browser);
    page = opened.page;
    page.setDefaultTimeout(30_000);
    await signIn(page, world.origin, secret);
  };
  const press = (name: string) => page.getByRole("button", { name, exact: true }).first().click();
  const dialog = () => page.locator("dialog[open]").last();
  /** Presses a dialog's button. With `secret` the dialog asks for the secret again. */
  const submit = async (name: string, secret?: string) => {
    await dialog().getByRole("button", { name, exact: true }).click();
    if (secret === undefined) return;
    await page.getByLabel(/^Your (API key|admin token)$/).fill(secret);
    await page.getByRole("button", { name: "Confirm", exact: true }).click();
  };
  /** The new secret, which is shown once. */
  const secretShown = async () => {
    const shown = await page.locator("dialog[open] .secret code").textContent();
    await press("I have copied it");
    return shown ?? "";
  };
  const row = (name: string) => page.getByRole("row").filter({ hasText: name });
  const valueIn = async (of: ReturnType<Page["locator"]>) =>
    Number(await of.locator("data").first().getAttribute("value"));
  const clientOf = (apiKey: string) =>
    new OpenAI({ baseURL: `${world.origin}/v1`, apiKey, maxRetries: 0 });
  const statusOf = (call: Promise<unknown>) =>
    call.then(
      () => 200,
      (error) => error.status as number,
    );
  /** `performance.now()` at the sending of each request that generated something. */
  const askedAt: number[] = [];
  const say = async (client: OpenAI, input: string) => {
    const sentAt = performance.now();
    const fields = { model: "chat-1", input, max_output_tokens: 200 };
    const answer = await client.responses.create(fields);
    askedAt.push(sentAt);
    return answer;
  };
  const costOf = ({ usage }: { usage?: Document }): number => usage.costUsdMicros;
  /** Sends a request like the page itself. */
  const asked = (path: string): Promise<Document> =>
    page.evaluate(async (path) => (await fetch(`/console/api${path}`)).json(), path);

  test(
    "the developer: an answer of each kind, and a key's life",
    async () => {
      const { key } = world;
      await open(key);
      await visit(page, world.origin, "/console/playground?kind=chat");
      await page.getByLabel("Message").fill("Why is the sky blue?");
      askedAt.push(performance.now());
      await press("Send");
      await page.locator(".charge").first().waitFor();
      for (const [kind, label, button] of [
        ["image", "Prompt", "Generate"],
        ["video", "Prompt", "Generate"],
        ["music", "Title", "Generate"],
        ["speech", "Text", "Speak"],
      ] as const) {
        await visit(page, world.origin, `/console/playground?kind=${kind}`);
        await page.getByLabel(label, { exact: true }).fill("Good morning");
        askedAt.push(performance.now());
        await press(button);
        await page
          .getByText(/^charged/)
          .first()
          .waitFor({ timeout: generationMs });
      }

      await visit(page, world.origin, "/console/keys");
      await press("Create a key");
      await page.getByLabel("Name", { exact: true }).fill("the application");
      await submit("Create key", key);
      await page.getByText("The secret of the application").waitFor();
      const first = await secretShown();
      const answer = await say(clientOf(first), "Hello there");
      expect(answer.output_text).not.toBe("");

      await row("the application").getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Limit in US dollars").fill("0.000001");
      await submit("Save changes", key);
      await row("the application").locator("meter").waitFor();
      // The limit is in force within a second. Requests before that are charged too.
      let paid = costOf(answer);
      const isInForce = async () => {
        const more = await say(clientOf(first), "More").catch(() => undefined);
        if (more) paid += costOf(more);
        return more === undefined;
      };
      await until("the limit to be in force", isInForce, { withinMs: generationMs });

      await visit(page, world.origin, "/console/usage?by=api_key_id");
      const spent = row("the application").first();
      await spent.waitFor();
      expect(await valueIn(spent.locator("td").last())).toBe(paid);

      await visit(page, world.origin, "/console/keys");
      await row("the application").getByRole("button", { name: "Rotate" }).click();
      await page.getByLabel("The old secret stops working").selectOption("0");
      await submit("Rotate key", key);
      const second = await secretShown();
      expect(await statusOf(clientOf(second).models.list())).toBe(200);
      await until("the former secret to be refused", async () => {
        return (await statusOf(clientOf(first).models.list())) === 401;
      });
      await row("the application").getByRole("button", { name: "Delete" }).click();
      await submit("Delete for good");
      await until("the key to be refused", async () => {
        return (await statusOf(clientOf(second).models.list())) === 401;
      });
      expect(opened.faults).toEqual([]);
      await press("Sign out");
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
    },
    5 * generationMs,
  );

  test(
    "the operator: an account's life, what all accounts do, and books that agree",
    async () => {
      const { adminToken } = world;
      await open(adminToken);
      await visit(page, world.origin, "/console/operator/accounts");
      await press("Make an account");
      await page.getByLabel("Name", { exact: true }).fill("Harbour Works");
      await page.getByLabel("Dollars to begin with").fill("1");
      await page.getByLabel("Credits to begin with").fill("10");
      await submit("Make account", adminToken);
      await page.getByText("Harbour Works’s first key").waitFor();
      const secret = await secretShown();
      const client = clientOf(secret);
      const cost = costOf(await say(client, "Hello from the harbour"));
      expect(cost).toBeGreaterThan(0);

      await page.getByRole("link", { name: "Harbour Works" }).click();
      await page.getByRole("heading", { name: "Harbour Works" }).waitFor();
      const id =
        (await page.locator("h1 ~ * code, .lead code, code.id").first().textContent()) ?? "";
      const figures = async () => {
        const of = (name: string) =>
          valueIn(page.locator(".figure").filter({ has: page.getByText(name, { exact: true }) }));
        return { available: await of("Dollars"), spent: await of("Dollars charged") };
      };
      await expect.poll(async () => (await figures()).spent).toBe(cost);
      expect(await figures()).toEqual({ available: 1_000_000 - cost, spent: cost });

      await press("Grant");
      await page.getByLabel("Dollars", { exact: true }).fill("0.5");
      await submit("Grant", adminToken);
      await expect.poll(async () => (await figures()).available).toBe(1_500_000 - cost);
      await press("Refund");
      await submit("Give back", adminToken);
      await expect.poll(figures).toEqual({ available: 1_500_000, spent: 0 });
      await press("Suspend");
      await press("Suspend account");
      await page.getByText("Suspended since").waitFor();
      await until("its key to be refused", async () => {
        const nothing = client.responses.create({ model: "no such model", input: "Hello?" });
        return (await statusOf(nothing)) === 403;
      });
      expect(await statusOf(client.models.list())).toBe(200);

      // The page shows the sums of the entries, and the audit finds no other figure.
      const { data: entries } = await asked(`/admin/accounts/${id}/entries?limit=100`);
      const sums = { available: 0, reserved: 0, spent: 0 };
      for (const entry of entries.filter((one: Document) => one.unit === "usd_micros")) {
        sums.available += entry.freeDelta;
        sums.reserved += entry.heldDelta;
        sums.spent += entry.spentDelta;
      }
      expect(sums).toEqual({ available: 1_500_000, reserved: 0, spent: 0 });
      expect((await asked(`/admin/accounts/${id}`)).usdMicros).toMatchObject(sums);
      await visit(page, world.origin, "/console/operator/ledger");
      await press("Audit now");
      await page.getByText("Every balance is the sum of its entries.").waitFor();
      expect(await asked("/admin/ledger/audit")).toMatchObject({ ok: true, differences: [] });

      await visit(page, world.origin, `/console/operator/keys?account=${id}`);
      expect(await page.getByRole("row").count()).toBe(2);
      await visit(page, world.origin, "/console/operator/keys");
      await row("the application").getByText("revoked").waitFor();
      await visit(page, world.origin, "/console/operator/jobs");
      expect(await page.getByRole("row").count()).toBe(4);
      await visit(page, world.origin, "/console/operator/holds");
      await page.getByText("Nothing is held").waitFor();
      await press("To review");
      await page.getByText("Nothing to review").waitFor();

      await visit(page, world.origin, "/console/operator/catalog");
      const shipped = await readFile(join(root, "deploy/catalog.yaml"), "utf8");
      await page
        .getByLabel("Catalog (YAML)")
        .fill(shipped.replace("creditPrice: 5", "creditPrice: 6"));
      await press("Check");
      await page.getByText("It changes 1 of them.").waitFor();
      await page.locator(".diff", { hasText: "creditPrice" }).getByText('"6"').waitFor();
      await page.getByLabel("Catalog (YAML)").fill("models: 7");
      await press("Check");
      await page.getByText("It would be refused. The catalog in force would stay.").waitFor();

      await say(clientOf(world.key), "Good evening");
      await visit(page, world.origin, "/console/operator/upstreams");
      await row("studio").getByText("healthy").waitFor();
      // Each process of a mesh reports every few seconds.
      const requestsTold = async () => {
        const { data: upstreams } = await asked("/admin/upstreams");
        expect(upstreams[0]).toMatchObject({ name: "studio", errors: 0 });
        return upstreams[0].requests;
      };
      const counted = askedAt.filter((at) => performance.now() - at < countedMs);
      expect(counted.length).toBeGreaterThan(0);
      await expect.poll(requestsTold).toBeGreaterThanOrEqual(counted.length);
      await expect.poll(async () => (await asked("/admin/upstreams")).data[0].inFlight).toBe(0);

      await visit(page, world.origin, "/console/operator/audit");
      const all = (await asked("/admin/audit")).data.map((one: Document) => one.action);
      // The installation has made the first account before.
      const actions = all.reverse().slice(-5);
      expect(actions).toEqual([
        ...["console.sign_in", "account.create", "account.top_up", "account.refund"],
        "account.suspend",
      ]);
      for (const action of actions) await row(action).first().waitFor();
      expect(opened.faults).toEqual([]);
      await press("Sign out");
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await open(adminToken);
      const [newest, before] = (await asked("/admin/audit")).data;
      expect([newest.action, before.action]).toEqual(["console.sign_in", "console.sign_out"]);
    },
    5 * generationMs,
  );
}
