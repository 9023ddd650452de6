import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type AccountClaims, Provider } from "oidc-provider";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { askConsole, ownPage } from "../edge/console-client.ts";
import { type EdgeWorld, edgeAdminToken, startEdge } from "../edge/world.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { openConsoleMs, untilBuilt } from "./screens.ts";

/** A person's claims beside `sub`, by login. Tests change them. */
let people: Record<string, Record<string, unknown>> = {};

/**
 * A real provider on a host that is another site than the console's. Its claims are in the ID token. With `atUserInfo` they are only at its
 * userinfo endpoint, like those of some real providers.
 */
async function startProvider(redirectUri: () => string, atUserInfo: boolean) {
  const server: Server = createServer((request, response) => {
    void handler(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "genmesh",
        client_secret: "secret of the client",
        redirect_uris: [redirectUri()],
        response_types: ["code"],
        grant_types: ["authorization_code"],
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    conformIdTokenClaims: atUserInfo,
    claims: { openid: ["sub"], profile: ["genmesh_account", "genmesh_role"], auth_time: null },
    pkce: { required: () => true },
    cookies: { keys: ["a key of the test"] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: async (): Promise<AccountClaims> => ({ sub, ...people[sub] }),
    }),
  });
  const handler = provider.callback();
  return {
    issuer,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe.skipIf(chromiumPath === undefined)("sign-in at an identity provider", () => {
  let stack: AsyncDisposableStack;
  let edge: EdgeWorld;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let origin: string;
  let port: number;

  beforeAll(async () => {
    stack = new AsyncDisposableStack();
    edge = stack.use(await startEdge({ billing: { getKeyUsage: () => ({ keys: [] }) } }));
    browser = await openBrowser();
    stack.defer(() => browser.close());
    await openConsole(false);
  }, openConsoleMs);
  afterAll(() => stack?.disposeAsync());
  beforeEach(async () => {
    people = { anna: { genmesh_account: edge.accountId, genmesh_role: "member" } };
    context = await browser.newContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  /** A gateway with sign-in at a provider of its own. */
  async function openConsole(atUserInfo: boolean, operatorToken = edgeAdminToken): Promise<void> {
    // The provider needs the callback's address, and the console the issuer's, so the port is chosen first.
    port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const provider = stack.use(
      await startProvider(() => `${origin}/console/api/oidc/callback`, atUserInfo),
    );
    await edge.another(
      {
        console: {
          ...(operatorToken === "" ? {} : { operatorToken }),
          oidc: {
            issuer: provider.issuer,
            clientId: "genmesh",
            clientSecret: "secret of the client",
            accountClaim: "genmesh_account",
            roleClaim: "genmesh_role",
          },
        },
      },
      port,
    );
    await untilBuilt(origin);
  }

  /** Fills in the provider's pages, from any of them, until it sends the browser back. */
  const atProvider = async (login: string): Promise<void> => {
    for (let step = 0; step < 4 && !page.url().startsWith(origin); step++) {
      const name = page.locator("input[name=login]");
      if ((await name.count()) > 0) {
        await name.fill(login);
        await page.locator("input[name=password]").fill("any");
      }
      await Promise.all([
        page.waitForNavigation(),
        page.locator("button[type=submit], input[type=submit]").first().click(),
      ]);
    }
  };
  const begin = async (login: string, query = "") => {
    await page.goto(`${origin}/console/api/oidc/begin${query}`);
    await atProvider(login);
  };
  const session = () =>
    page.evaluate(() =>
      fetch("/console/api/session").then(async (one) => ({
        status: one.status,
        body: await one.json(),
      })),
    );
  const makeKey = () =>
    page.evaluate(() =>
      fetch("/console/api/v1/keys", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"name": "app"}',
      }).then(async (one) => ({ status: one.status, body: await one.json() })),
    );

  test("is offered, and leads to a session whose cookie counts from the first request on", async () => {
    const offered = await askConsole(port, "/console/api/sign-in");
    expect(offered.json.oidc).toEqual({
      label: expect.stringMatching(/^localhost:\d+$/),
      url: "/console/api/oidc/begin",
    });
    const cookies: (string | undefined)[] = [];
    page.on("request", async (request) => {
      if (request.url() === `${origin}/console/`) cookies.push((await request.allHeaders()).cookie);
    });
    await begin("anna");
    await page.waitForURL(`${origin}/console/`);
    expect(await session()).toMatchObject({
      status: 200,
      body: { role: "member", accountId: edge.accountId, keyName: "Console: anna", oidc: true },
    });
    await expect.poll(() => cookies[0]).toMatch(/(^|; )genmesh=[\w-]{43}/);
    const kept = await context.cookies(origin);
    expect(kept.map(({ name }) => name)).toEqual(["genmesh"]);
  });

  test("role and account come from claims, also where they are at the userinfo endpoint alone", async () => {
    people = { ola: { genmesh_account: edge.accountId, genmesh_role: ["staff", "owner"] } };
    await openConsole(true);
    await begin("ola");
    await page.waitForURL(`${origin}/console/`);
    expect((await session()).body).toMatchObject({ role: "owner", accountId: edge.accountId });
  });

  test.each<[string, Record<string, unknown>]>([
    ["no claims", {}],
    ["no role", { genmesh_account: "acct" }],
    ["a role that is none here", { genmesh_account: "acct", genmesh_role: "admin" }],
    ["no account", { genmesh_role: "owner" }],
    ["an account that does not exist", { genmesh_account: "acct_nobody", genmesh_role: "owner" }],
    ["several accounts", { genmesh_account: ["a", "b"], genmesh_role: "owner" }],
    ["an e-mail address", { email: "anna@example.com", genmesh_role: "member" }],
  ])("%s: refused, with a page that says so and no session", async (_what, claims) => {
    people = { anna: claims };
    await begin("anna");
    expect(await page.textContent("h1")).toBe("Not signed in");
    expect((await session()).status).toBe(401);
  });

  test("an operator's role counts where the gateway has the admin token, and nowhere else", async () => {
    people = { root: { genmesh_role: "operator" } };
    await begin("root");
    await page.waitForURL(`${origin}/console/`);
    expect((await session()).body).toMatchObject({ role: "operator", oidc: true, accountId: null });
    await context.close();
    context = await browser.newContext();
    page = await context.newPage();
    await openConsole(false, "");
    await begin("root");
    expect(await page.textContent("h1")).toBe("Not signed in");
  });

  test("what makes keys wants a sign-in at which the provider asked again", async () => {
    people = { olga: { genmesh_account: edge.accountId, genmesh_role: "owner" } };
    await begin("olga");
    await page.waitForURL(`${origin}/console/`);
    expect(await makeKey()).toMatchObject({
      status: 403,
      body: { error: { code: "secret_required" } },
    });
    // The provider has a session of its own, and asks for the password nevertheless.
    await page.goto(`${origin}/console/api/oidc/begin?again=1&to=/console/keys`);
    expect(await page.locator("input[name=password]").count()).toBe(1);
    await atProvider("olga");
    await page.waitForURL(`${origin}/console/keys`);
    expect(await makeKey()).toMatchObject({ status: 201 });
    await edge.clock.leap(5 * 60_000);
    expect(await makeKey()).toMatchObject({ body: { error: { code: "secret_required" } } });
  });

  test("an answer that was not begun in this browser, or comes twice, opens nothing", async () => {
    const callback = "/console/api/oidc/callback?code=x&state=y";
    expect((await askConsole(port, callback)).status).toBe(400);
    const begun = await askConsole(port, "/console/api/oidc/begin");
    expect(begun.status).toBe(303);
    const [sent = ""] = begun.cookies;
    expect(sent).toMatch(/^genmesh-oidc=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    const location = new URL(begun.headers.location ?? "");
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      state: expect.stringMatching(/^.{20,}$/),
      nonce: expect.stringMatching(/^.{20,}$/),
    });
    const cookie = sent.split(";", 1)[0];
    const other = await askConsole(port, callback, { cookie });
    expect(other.status).toBe(401);
    expect(other.cookies.join()).not.toMatch(/genmesh=[\w-]/);
    // A real callback, for the second time, and in another browser.
    const urls: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/oidc/callback")) urls.push(request.url());
    });
    await begin("anna");
    await page.waitForURL(`${origin}/console/`);
    const [answered = ""] = urls;
    await page.goto(answered);
    expect(await page.textContent("h1")).toBe("Not signed in");
    const stranger = await browser.newContext();
    const elsewhere = await stranger.newPage();
    const response = await elsewhere.goto(answered);
    expect(response?.status()).toBe(400);
    await stranger.close();
  });

  test("leads to no other place than the console's", async () => {
    for (const to of [
      "https://evil.example/",
      "//evil.example",
      "/console/../v1",
      '/console/"><script>',
    ]) {
      const begun = await askConsole(port, `/console/api/oidc/begin?to=${encodeURIComponent(to)}`);
      const value = begun.cookies[0]?.split(/[=;]/)[1] ?? "";
      expect(JSON.parse(Buffer.from(value, "base64url").toString()).to).toBe("/console/");
    }
  });

  test("a key that its account's owner revoked lets the person in no more", async () => {
    people = { paul: { genmesh_account: edge.accountId, genmesh_role: "member" } };
    await begin("paul");
    await page.waitForURL(`${origin}/console/`);
    const { keyId } = (await session()).body;
    await edge.admin.revokeKey({ keyId });
    expect((await session()).status).toBe(401);
    await page.goto(`${origin}/console/api/oidc/begin`);
    await atProvider("paul");
    expect(await page.textContent("h1")).toBe("Not signed in");
  });

  test("a provider that is away is told", async () => {
    const app = await edge.another({
      console: {
        oidc: {
          issuer: "http://127.0.0.1:1",
          clientId: "a",
          clientSecret: "b",
          accountClaim: "a",
          roleClaim: "r",
        },
      },
    });
    const away = (app.server.address() as AddressInfo).port;
    const answer = await askConsole(away, "/console/api/oidc/begin");
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("does not answer");
    expect((await askConsole(away, "/console/api/session", { headers: ownPage })).status).toBe(401);
  });
});
