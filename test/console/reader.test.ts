import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "../e2e/caller.ts";
import {
  type Document,
  ended,
  heldImages,
  type MediaWorld,
  startMediaWorld,
  submit,
} from "../e2e/media-world.ts";
import { isOneProcess, oneProcessOnly } from "../e2e/world.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

const create = "POST /images/generations";
const image = { model: "scripted-image", prompt: "a boat" };
/** Milliseconds for pages that wait for a timer of the console, on a busy machine. */
const screenMs = 90_000;

describe.skipIf(chromiumPath === undefined)("what a reader of the console is shown", () => {
  oneProcessOnly();

  let made: MediaWorld;
  let browser: Browser;
  let origin: string;
  /** The first key of a new account. */
  let first: Caller;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    if (!isOneProcess) return;
    made = await startMediaWorld();
    origin = new URL(made.world.baseUrl).origin;
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await made?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    first = await made.world.caller({ credits: 100n });
    opened = await openPage(browser);
    page = opened.page;
    page.setDefaultTimeout(screenMs / 3);
    return opened.close;
  });

  /** A job whose upstream answers when the test says so. */
  const heldJob = async (caller: Caller) => {
    const { behaviour, open } = heldImages(made.png);
    made.media.next(create, behaviour);
    const job = await submit(caller, "images", image);
    await expect
      .poll(async () => (await caller.get(`/images/generations/${job.id}`)).json.status)
      .toBe("running");
    return { job, open };
  };
  const row = ({ id }: Document) => page.getByRole("row").filter({ hasText: id.slice(-8) });
  const progressOf = ({ id }: Document) => page.getByLabel(`Progress of ${id}`);
  const readerScopes = [Scope.JOBS_READ_ALL, Scope.IMAGES];

  test(
    "jobs: its own move first, then those of other keys, and one that is on another page",
    async () => {
      const reader = await made.world.withKey(first, { scopes: readerScopes });
      const own = await heldJob(reader);
      const others = [await heldJob(first), await heldJob(first), await heldJob(first)];
      await signIn(page, origin, reader.key);
      await page.goto(`${origin}/console/jobs`);
      for (const { job } of [own, ...others]) await row(job).getByText("running").waitFor();
      own.open();
      await row(own.job).getByText("completed").waitFor();
      for (const { job, open } of others.slice(1)) {
        open();
        await row(job).getByText("completed").waitFor();
      }
      const [last] = others as [(typeof others)[0]];
      await page.goto(`${origin}/console/jobs?status=completed&id=${last.job.id}`);
      const detail = page.getByLabel("The job");
      await detail.getByText("running").waitFor();
      await detail.getByText("Its files are for the key that made it").waitFor();
      last.open();
      await detail.getByText("completed").waitFor();
      expect(await detail.locator(".outputs, .button").count()).toBe(0);
      expect(opened.faults).toEqual([]);
    },
    screenMs,
  );

  test(
    "a job that may not be watched is asked for once, and the others move",
    async () => {
      const scopes = [...readerScopes, Scope.MODELS];
      const reader = await made.world.withKey(first, { scopes });
      await signIn(page, origin, reader.key);
      // A screen without a watch, until there is something to watch.
      await visit(page, origin, "/console/models");
      const jobs = [];
      for (let i = 0; i < 4; i += 1) jobs.push(await heldJob(reader));
      // The answer of an older media service for another key's job.
      const [oldest, ...refused] = jobs as [(typeof jobs)[0], ...typeof jobs];
      const asked: string[] = [];
      for (const { job } of refused) {
        await page.route(`**/jobs/${job.id}/events`, async (route) => {
          asked.push(job.id);
          await route.fulfill({ status: 404, json: { error: { message: "none", code: "none" } } });
        });
      }
      await page.goto(`${origin}/console/jobs`);
      await row(oldest.job).getByText("running").waitFor();
      oldest.open();
      await row(oldest.job).getByText("completed").waitFor();
      // The page requests the list again instead.
      for (const { open } of refused) open();
      for (const { job } of refused) await row(job).getByText("completed").waitFor();
      expect(asked.toSorted()).toEqual(refused.map(({ job }) => job.id).toSorted());
    },
    screenMs,
  );

  test(
    "a job whose events broke off with an error is watched again",
    async () => {
      await signIn(page, origin, first.key);
      // A screen without a watch, until there is something to watch.
      await visit(page, origin, "/console/models");
      const held = await heldJob(first);
      await page.route(
        `**/jobs/${held.job.id}/events`,
        (route) =>
          route.fulfill({
            contentType: "text/event-stream",
            body: 'event: error\ndata: {"error":{"message":"The service is going away."}}\n\n',
          }),
        { times: 1 },
      );
      await page.goto(`${origin}/console/jobs?status=failed&id=${held.job.id}`);
      await page.getByLabel("The job").getByText("running").waitFor();
      held.open();
      await page.getByLabel("The job").getByText("completed").waitFor();
      expect(opened.faults).toEqual([]);
    },
    screenMs,
  );

  test(
    "overview: a job that runs behind ten that have ended, and one that begins later",
    async () => {
      const before = await heldJob(first);
      for (let i = 0; i < 10; i += 1) await ended(first, await submit(first, "images", image));
      await signIn(page, origin, first.key);
      await progressOf(before.job).waitFor();
      const later = await heldJob(first);
      await progressOf(later.job).waitFor();
      for (const { job, open } of [before, later]) {
        open();
        await progressOf(job).waitFor({ state: "detached" });
      }
      await page.getByText("Nothing is running").waitFor();
      expect(opened.faults).toEqual([]);
    },
    screenMs,
  );

  test(
    "usage: all pages, where the API ends one early",
    async () => {
      await first.post("/chat/completions", {
        ...{ model: "scripted", messages: [{ role: "user", content: "Hi" }] },
      });
      await first.settled();
      await signIn(page, origin, first.key);
      // The real answers, in pages of ten days.
      await page.route("**/v1/usage?*", (route) =>
        route.continue({ url: route.request().url().replace("limit=31", "limit=10") }),
      );
      await visit(page, origin, "/console/usage");
      await page.getByRole("rowheader", { name: "scripted" }).first().waitFor();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "Download CSV" }).click(),
      ]);
      let csv = "";
      for await (const chunk of await download.createReadStream()) csv += chunk;
      expect(csv.trim().split("\r\n")).toHaveLength(2);
      expect(csv).toContain(",scripted,");
    },
    screenMs,
  );

  test(
    "keys: a key with bounds of its own makes one that has them too",
    async () => {
      const bounds = {
        scopes: [Scope.KEYS, Scope.TEXT, Scope.MODELS],
        allowedModels: ["scripted"],
        monthlyUsdMicrosLimit: 2_000_000n,
        expireTime: timestampFromMs(Date.UTC(2100, 0, 1)),
      };
      const owner = await made.world.withKey(first, bounds);
      await signIn(page, origin, owner.key);
      await visit(page, origin, "/console/keys");
      await page.getByRole("button", { name: "Create a key" }).click();
      await page.getByLabel("Name").fill("bounded");
      await page.getByText("as your own key").first().waitFor();
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByLabel("Your API key").fill(owner.key);
      await page.keyboard.press("Enter");
      await page.getByText("The secret of bounded").waitFor();
      const { json } = await owner.get("/keys");
      const key = json.data.find(({ name }: Document) => name === "bounded");
      expect(key).toMatchObject({
        ...{ models: ["scripted"], limitUsdMicros: 2_000_000, limit_reset: "monthly" },
        expires_at: "2100-01-01T00:00:00.000Z",
      });
    },
    screenMs,
  );

  test(
    "models: each has its price, and what it can be tried with",
    async () => {
      const scopes = [Scope.MODELS, Scope.TEXT, Scope.IMAGES];
      const reader = await made.world.withKey(first, { scopes });
      await signIn(page, origin, reader.key);
      await visit(page, origin, "/console/models");
      const card = (id: string) =>
        page.getByRole("article").filter({ has: page.getByText(id, { exact: true }) });
      await card("scripted-ears").getByText("$0.06").waitFor();
      expect(await card("scripted-ears").textContent()).toContain("$0.06 per minute");
      expect(await card("scripted-vectors").textContent()).toContain("Input$1.00");
      const tried = (id: string) => card(id).getByRole("link", { name: /^Try/ }).count();
      for (const id of ["scripted-image", "scripted-ears", "scripted-vectors"]) {
        expect(await tried(id), id).toBe(1);
      }
      // This key has no scope for it.
      expect(await tried("scripted-speech")).toBe(0);
      await page.getByLabel("Kind").selectOption("transcription");
      expect(await page.getByRole("article").count()).toBe(1);
    },
    screenMs,
  );
});
