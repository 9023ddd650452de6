import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type EdgeWorld, edgeAdminToken, startEdge } from "../edge/world.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { openConsoleMs, untilBuilt } from "./screens.ts";

/** An HTML page that would do harm where it ran with the cookie's origin. */
const hostile = "<!doctype html><title>file</title><script>document.title = 'ran'</script>";
const deleted: string[] = [];

describe.skipIf(chromiumPath === undefined)("the console in a browser", () => {
  let edge: EdgeWorld;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let origin: string;
  /** Pages of another site. A test sets their content, for any path. */
  let evil: Server;
  let evilPage = "";
  let evilOrigin: string;

  beforeAll(async () => {
    edge = await startEdge({
      settings: { console: { operatorToken: edgeAdminToken } },
      media: {
        locateFile: () => ({
          blobKey: "uploads/1",
          mimeType: "text/html",
          sizeBytes: BigInt(hostile.length),
          sha256: "ab",
          fileName: "a.html",
          createTime: timestampFromMs(0),
        }),
        deleteFile: ({ fileId }) => {
          deleted.push(fileId);
          return {};
        },
        uploadFile: async () => {
          deleted.push("uploaded");
          return {};
        },
      },
    });
    await edge.blobs.put("uploads/1", Readable.from([Buffer.from(hostile)]));
    origin = `http://127.0.0.1:${edge.port}`;
    evil = createServer((_request, response) => {
      response.setHeader("content-type", "text/html").end(evilPage);
    }).listen(0, "127.0.0.1");
    await once(evil, "listening");
    // For browsers this name is another site than 127.0.0.1. The other one is another origin of the same site.
    evilOrigin = `http://localhost:${(evil.address() as AddressInfo).port}`;
    await untilBuilt(origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    evil?.close();
    await edge?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    deleted.length = 0;
    context = await browser.newContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  /** Signs in like the app, from the console's own page. */
  const signIn = async (secret = edge.key): Promise<number> => {
    await page.goto(`${origin}/console/nothing/of/the/app`);
    return send(page, "/console/api/session", { secret });
  };
  const send = (from: Page, path: string, body: unknown, init: RequestInit = {}) =>
    from.evaluate(
      ([url, text, given]) =>
        fetch(url as string, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: text as string,
          credentials: "include",
          ...(given as RequestInit),
        }).then(
          (answer) => answer.status,
          () => 0,
        ),
      [path, JSON.stringify(body), init] as const,
    );
  const get = (from: Page, path: string) =>
    from.evaluate(
      (url) =>
        fetch(url, { credentials: "include" }).then(
          (answer) => answer.status,
          () => 0,
        ),
      path,
    );

  test("signs in; the cookie is out of reach of scripts, and counts in a new tab", async () => {
    expect(await signIn()).toBe(201);
    expect(await page.evaluate("document.cookie")).toBe("");
    expect(await get(page, "/console/api/session")).toBe(200);
    expect(await get(page, "/console/api/v1/models")).toBe(200);
    expect(await get(page, "/v1/models")).toBe(401);
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({
      name: "genmesh",
      httpOnly: true,
      sameSite: "Strict",
      path: "/",
    });
    const tab = await context.newPage();
    await tab.goto(`${origin}/console/api/session`);
    expect(await tab.textContent("body")).toContain('"console.session"');
  });

  test("its pages run no script that stands in them, and load nothing from elsewhere", async () => {
    await signIn();
    const blocked = await page.evaluate(async (elsewhere) => {
      const refused: string[] = [];
      document.addEventListener("securitypolicyviolation", (event) => {
        refused.push(event.effectiveDirective);
      });
      const inline = document.createElement("script");
      inline.textContent = "window.ran = true";
      document.body.append(inline);
      const image = document.createElement("img");
      image.src = `${elsewhere}/a.png`;
      document.body.append(image);
      document.body.insertAdjacentHTML("beforeend", '<p style="color: red" onclick="1">x</p>');
      const frame = document.createElement("iframe");
      frame.src = "/docs/";
      document.body.append(frame);
      await fetch(elsewhere).catch(() => {});
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => (refused.length >= 6 ? resolve() : setTimeout(look, 20));
      look();
      await promise;
      return { refused, ran: "ran" in window };
    }, evilOrigin);
    expect(blocked.ran).toBe(false);
    expect(new Set(blocked.refused)).toEqual(
      new Set([
        "script-src-elem",
        "script-src-attr",
        "img-src",
        "style-src-attr",
        "frame-src",
        "connect-src",
      ]),
    );
  });

  test("another site's pages change nothing, with any request, and read nothing", async () => {
    await signIn();
    evilPage = "<!doctype html><title>evil</title>";
    await page.goto(evilOrigin);
    // The cookie is not sent, and no answer can be read.
    expect(await get(page, `${origin}/console/api/session`)).toBe(0);
    expect(await send(page, `${origin}/console/api/session`, { secret: edge.key })).toBe(0);
    await send(page, `${origin}/console/api/v1/files/file_1`, {}, { method: "DELETE" });
    await send(page, `${origin}/console/api/v1/files`, {}, { mode: "no-cors" });
    expect(deleted).toEqual([]);
    // A form is a navigation. It is sent, and refused, also where the page's own uploads are taken.
    const uploads = ["/console/api/v1/files", "/console/api/v1/audio/transcriptions"];
    const formPaths = ["/console/api/session", ...uploads];
    for (const enctype of [
      "text/plain",
      "multipart/form-data",
      "application/x-www-form-urlencoded",
    ]) {
      for (const path of formPaths) {
        evilPage = `<!doctype html><form method=post enctype="${enctype}" action="${origin}${path}">
          <input name='{"secret":"${edge.key}","a":"' value='"}'></form>`;
        const sent = await context.newPage();
        await sent.goto(evilOrigin);
        const [answer] = await Promise.all([
          sent.waitForResponse((one) => one.url() === `${origin}${path}`),
          sent.evaluate("document.forms[0].submit()"),
        ]);
        expect(answer.status()).toBe(403);
        await sent.close();
      }
    }
    expect(deleted).toEqual([]);
  });

  test("nor do pages of the same site: another port, whose requests bring the cookie", async () => {
    await signIn();
    evilPage = "<!doctype html><title>neighbour</title>";
    const neighbour = evilOrigin.replace("localhost", "127.0.0.1");
    await page.goto(neighbour);
    expect(await get(page, `${origin}/console/api/session`)).toBe(0);
    const [answer] = await Promise.all([
      page.waitForResponse(
        (one) => one.url().endsWith("/file_1") && one.request().method() === "POST",
      ),
      page.evaluate((url) => {
        const form = document.createElement("form");
        form.method = "post";
        form.action = url;
        document.body.append(form);
        form.submit();
      }, `${origin}/console/api/v1/files/file_1`),
    ]);
    expect((await answer.request().allHeaders()).cookie).toMatch(/^genmesh=/);
    expect(answer.status()).toBe(403);
    // The browser shows the refusal. An earlier visit of another page would be broken off by it.
    await page.waitForURL(/file_1$/);
    // The neighbour cannot take its pages into a frame either.
    evilPage = `<!doctype html><iframe src="${origin}/console/"></iframe>`;
    await page.goto(neighbour);
    await expect.poll(() => page.frames()[1]?.url() ?? "").toMatch(/^chrome-error:/);
  });

  test("the documentation's page cannot use the cookie", async () => {
    await signIn();
    // Ends the requests of the console's own page, which have the cookie.
    await page.goto("about:blank");
    const seen: (string | undefined)[] = [];
    page.on("request", async (request) => {
      if (request.url().includes("/console/api")) seen.push((await request.allHeaders()).cookie);
    });
    await page.goto(`${origin}/docs/`);
    await page.getByText("List models").first().waitFor();
    expect(await page.evaluate("self.origin")).toBe("null");
    // The page may read public data, and only those.
    expect(await page.evaluate("fetch('/openapi.json').then((one) => one.status)")).toBe(200);
    expect(await get(page, "/console/api/session")).toBe(0);
    expect(await get(page, "/console/api/v1/models")).toBe(0);
    expect(await send(page, "/console/api/session", { secret: edge.key })).toBe(0);
    await send(page, "/console/api/v1/files/file_1", {}, { method: "DELETE" });
    await send(page, "/console/api/v1/files/file_1", {}, { method: "POST", mode: "no-cors" });
    expect(deleted).toEqual([]);
    expect(seen.length).toBeGreaterThan(2);
    expect(seen.filter((cookie) => cookie !== undefined)).toEqual([]);
    // A window of the console does not help either: the sandbox has no popups.
    expect(await page.evaluate(() => window.open("/console/") === null)).toBe(true);
  });

  test("a file that a page would run, opened at its URL, runs nothing and has no origin", async () => {
    await signIn();
    await page.goto(`${origin}/console/api/v1/files/file_1/content`);
    expect(await page.title()).toBe("file");
    expect(await page.evaluate("self.origin").catch(() => "null")).toBe("null");
  });

  test("a revoked key's session is over in the open page", async () => {
    const made = await edge.admin.createKey({ accountId: edge.accountId });
    expect(await signIn(made.secret)).toBe(201);
    expect(await get(page, "/console/api/v1/models")).toBe(200);
    await edge.admin.revokeKey({ keyId: made.key?.keyId ?? "" });
    expect(await get(page, "/console/api/v1/models")).toBe(401);
  });

  test("signing out takes the cookie away", async () => {
    await signIn();
    expect(await send(page, "/console/api/session", {}, { method: "DELETE" })).toBe(204);
    expect(await context.cookies()).toEqual([]);
    expect(await get(page, "/console/api/session")).toBe(401);
  });
});
