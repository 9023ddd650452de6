import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addressOf, pages, read } from "../deploy/site/pages.ts";
import { tempFolder } from "./host/process.ts";
import {
  axeFindings,
  browserNote,
  chromiumPath,
  openBrowser,
  openPage,
} from "./support/browser.ts";
import { thisCheckout } from "./support/checkout.ts";

// docs/ as a site in a browser, served below a path as a host of several sites would.

const base = "/handbook/";
const program = join(thisCheckout, "deploy/site/node_modules/@rspress/core/package.json");
const lacks = existsSync(program)
  ? browserNote
  : " (skipped: needs npm ci --prefix deploy/site, as npm run docs:site does)";
if (!existsSync(program))
  process.stderr.write("skipped: the site of docs/: no deploy/site/node_modules\n");

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/** A server of the files of a folder, at `base`. */
async function serve(folder: string): Promise<AsyncDisposable & { origin: string }> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site.test");
    const path = pathname.replace(base, "/").replace(/\/$/, "/index.html");
    const headers = { "content-type": types[extname(path)] ?? "application/octet-stream" };
    readFile(join(folder, path)).then(
      (body) => response.writeHead(200, headers).end(body),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A word that of all pages only this one has: the longest. */
function ownWordOf(page: string): string {
  const wordsOf = (text: string) => new Set(text.toLowerCase().match(/\b[a-z]{5,}\b/g));
  const others = wordsOf(
    pages
      .filter((other) => other !== page)
      .map(read)
      .join("\n"),
  );
  const own = [...wordsOf(read(page).replaceAll(/\]\([^)]*\)/g, "]"))];
  return own.filter((word) => !others.has(word)).sort((a, b) => b.length - a.length)[0] ?? "";
}

describe.skipIf(chromiumPath === undefined || lacks !== "")(`the site of docs/${lacks}`, () => {
  const world = new AsyncDisposableStack();
  let browser: Awaited<ReturnType<typeof openBrowser>>;
  let site = "";
  beforeAll(async () => {
    const { path } = world.use(await tempFolder());
    const args = ["deploy/site/build.ts", "--out", path, "--base", base];
    await promisify(execFile)(process.execPath, args, { cwd: thisCheckout });
    const { origin } = world.use(await serve(path));
    site = `${origin}${base}`;
    browser = await openBrowser();
    world.defer(() => browser.close());
  });
  afterAll(() => world.disposeAsync());

  /** A page of the site, and what went wrong in it: errors, and requests that failed or went to other hosts. */
  async function open(options: Parameters<typeof openPage>[1]): ReturnType<typeof openPage> {
    const opened = await openPage(browser, options);
    opened.page.on("response", (response) => {
      if (!response.ok() && response.status() !== 304) opened.faults.push(response.url());
    });
    opened.page.on("request", (request) => {
      if (!request.url().startsWith(site)) opened.faults.push(request.url());
    });
    return opened;
  }

  test.for([
    { width: 1280, colorScheme: "light" },
    { width: 1280, colorScheme: "dark" },
    { width: 390, colorScheme: "light" },
    { width: 390, colorScheme: "dark" },
  ] as const)("pages at $width pixels, $colorScheme", async (options) => {
    const { page, faults, close } = await open(options);
    for (const path of ["", "start.html", "clients.html", "money.html", "decisions/ledger.html"]) {
      await page.goto(site + path);
      await page.locator("main h1").waitFor();
      expect(await axeFindings(page), path).toEqual([]);
      const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(scrollWidth, path).toBeLessThanOrEqual(options.width);
    }
    const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    // --bg of the console.
    const isDark = options.colorScheme === "dark";
    expect(colour).toBe(isDark ? "rgb(16, 17, 20)" : "rgb(247, 247, 245)");
    expect(faults).toEqual([]);
    await close();
  });

  test("a reader goes from the start to a page, a file of the repository and an image", async () => {
    const { page, faults, close } = await open({});
    await page.goto(site);
    const navigation = page.locator(".rp-doc-layout__sidebar");
    await navigation.getByRole("link", { name: "Clients", exact: true }).click();
    await page.locator("main h1", { hasText: "Clients" }).waitFor();
    await page.locator("main").getByRole("link", { name: "recipes.test.ts" }).click();
    await page.waitForURL("**/files/test/clients/recipes.test.ts.txt");
    expect(await page.locator("body").textContent()).toContain("docs/clients.md");
    await page.goBack();
    await page.locator("main").getByRole("link", { name: "a page of their own" }).click();
    await page.waitForURL("**/openai-sdk.html");
    await page.goto(`${site}start.html`);
    for (const image of await page.locator("main img").all()) {
      await image.scrollIntoViewIfNeeded();
      const width = () => image.evaluate((one) => (one as HTMLImageElement).naturalWidth);
      await expect.poll(width).toBeGreaterThan(0);
    }
    expect(faults).toEqual([]);
    await close();
  });

  test("on a phone a reader opens the navigation and goes to a page", async () => {
    const { page, close } = await open({ width: 390 });
    await page.goto(site);
    expect(await page.getByRole("button", { name: "Search" }).isVisible()).toBe(true);
    await page.locator(".rp-doc-layout__menu button").first().click();
    const navigation = page.locator(".rp-doc-layout__sidebar");
    await navigation.getByRole("link", { name: "Upstreams", exact: true }).click();
    await page.locator("main h1", { hasText: "Models at other services" }).waitFor();
    await close();
  });

  test("the search finds a word of each page of docs", async () => {
    const { page, faults, close } = await open({});
    await page.goto(site);
    await page.locator(".rp-search-button").click();
    const input = page.locator(".rp-search-panel__input");
    const search = async (word: string, address: string) => {
      expect(word, address).not.toBe("");
      await input.fill(word);
      await page
        .locator(`.rp-search-panel__modal a[href^="${base}${address.slice(1)}"]`)
        .first()
        .waitFor();
    };
    const ofDocs = pages.filter((one) => /^docs\/[a-z-]+\.md$/.test(one));
    expect(ofDocs.length).toBeGreaterThan(15);
    for (const one of ofDocs) await search(ownWordOf(one), addressOf(one));
    await input.press("Enter");
    await page.waitForURL((url) => url.pathname !== base);
    expect(faults).toEqual([]);
    await close();
  });
});
