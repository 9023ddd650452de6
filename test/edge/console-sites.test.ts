import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { askConsole, type ConsoleRequest, ownPage, signIn } from "./console-client.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
beforeEach(async () => {
  edge = await startEdge({ settings: { console: {} }, media: { deleteFile: () => ({}) } });
});
afterEach(() => edge[Symbol.asyncDispose]());

const ask = (path: string, given: ConsoleRequest = {}) => askConsole(edge.port, path, given);
const post = (path: string, body: unknown, given: ConsoleRequest = {}) =>
  ask(path, { method: "POST", body, ...given, headers: { ...ownPage, ...given.headers } });
const portOf = (app: EdgeWorld["app"]) => (app.server.address() as AddressInfo).port;

describe("requests of other sites", () => {
  const host = () => `127.0.0.1:${edge.port}`;
  test.each<[string, () => Record<string, string>, boolean]>([
    ["its own page", () => ({ "sec-fetch-site": "same-origin" }), true],
    ["its own page, an older browser", () => ({ origin: `http://${host()}` }), true],
    ["its own page that hides its origin", () => ({ ...ownPage, origin: "null" }), true],
    ["another site", () => ({ "sec-fetch-site": "cross-site" }), false],
    ["another port or subdomain", () => ({ "sec-fetch-site": "same-site" }), false],
    ["the address line", () => ({ "sec-fetch-site": "none" }), false],
    ["a sandboxed page, an older browser", () => ({ origin: "null" }), false],
    ["another origin, an older browser", () => ({ origin: "https://evil.example" }), false],
    ["another scheme", () => ({ origin: `https://${host()}` }), false],
    [
      "another origin behind a proxy that rewrites Host",
      () => ({ ...ownPage, origin: "https://a.example" }),
      false,
    ],
    ["a page that does not say", () => ({}), false],
  ])("a change by %s", async (_who, headers, isTaken) => {
    const cookie = await signIn(edge.port, edge.key);
    const answer = await ask("/console/api/v1/files/file_1", {
      method: "DELETE",
      cookie,
      headers: headers(),
    });
    expect(answer.status).toBe(isTaken ? 200 : 403);
    if (!isTaken) expect(answer.json.error.code).toBe("cross_site_request");
    // The same for a sign-in: no page may sign a user in with another person's key.
    const login = await ask("/console/api/session", {
      method: "POST",
      body: { secret: edge.key },
      headers: headers(),
    });
    expect(login.status).toBe(isTaken ? 201 : 403);
    expect(login.cookies).toHaveLength(isTaken ? 1 : 0);
  });

  test("a host that makes no origin, as a trusted proxy may pass it on, is refused", async () => {
    const app = await edge.another({ console: {}, trustProxy: "127.0.0.1" });
    for (const host of ["a b", "[::1", "a:99999"]) {
      const headers = { ...ownPage, "x-forwarded-host": host };
      const plain = await askConsole(portOf(app), "/console/api/session", { headers });
      const secure = await askConsole(portOf(app), "/console/api/session", {
        method: "POST",
        body: { secret: edge.key },
        headers: { ...headers, "x-forwarded-proto": "https" },
      });
      for (const { status, json } of [plain, secure]) {
        expect([status, json.error.code]).toEqual([400, "invalid_value"]);
      }
    }
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"])(
    "a body of type %s is no JSON, from any site",
    async (type) => {
      const cookie = await signIn(edge.port, edge.key);
      for (const path of [
        "/console/api/session",
        "/console/api/v1/responses",
        "/console/api/v1/images/generations",
      ]) {
        const answer = await post(path, '{"secret": "x"}', {
          cookie,
          headers: { "content-type": type },
        });
        expect(answer.status).toBe(415);
      }
    },
  );

  test("pages of allowed origins call the API, never the console", async () => {
    const origin = "https://app.example.com";
    const app = await edge.another({ console: {}, corsOrigins: [origin] });
    const preflight = (path: string) =>
      askConsole(portOf(app), path, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST" },
      });
    expect((await preflight("/v1/models")).headers["access-control-allow-origin"]).toBe(origin);
    const refused = await preflight("/console/api/session");
    expect(refused.status).toBe(403);
    expect(Object.keys(refused.headers).filter((name) => /^access-control/.test(name))).toEqual([]);
  });
});

describe("plain HTTP", () => {
  const session = { method: "POST", body: { secret: "x" } };
  test.each(["127.0.0.1:7070", "localhost", "a.localhost:1", "[::1]:7070", "127.8.9.1"])(
    "is taken at %s",
    async (host) => {
      const answer = await ask("/console/api/session", {
        ...session,
        headers: { ...ownPage, host },
      });
      expect(answer.status).toBe(401);
    },
  );

  test.each([
    "api.example.com",
    "10.0.0.1:7070",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "0.0.0.0:7070",
  ])("is refused at %s, with the reason; the page itself is there to show it", async (host) => {
    const answer = await ask("/console/api/session", {
      ...session,
      body: { secret: edge.key },
      headers: { ...ownPage, host },
    });
    expect(answer).toMatchObject({ status: 403, json: { error: { code: "insecure_connection" } } });
    expect(answer.json.error.message).toMatch(/HTTPS.*GENMESH_TRUST_PROXY/);
    expect(answer.cookies).toEqual([]);
    const cookie = await signIn(edge.port, edge.key);
    const models = await ask("/console/api/v1/models", { cookie, headers: { host } });
    expect(models.status).toBe(403);
    expect((await ask("/console/keys", { headers: { host } })).status).not.toBe(403);
  });

  test("behind a proxy that is trusted and ends TLS the cookie is Secure and bound to the host", async () => {
    const app = await edge.another({ console: {}, trustProxy: "127.0.0.1" });
    const headers = { ...ownPage, host: "api.example.com", "x-forwarded-proto": "https" };
    const answer = await askConsole(portOf(app), "/console/api/session", {
      method: "POST",
      body: { secret: edge.key },
      headers,
    });
    expect(answer.cookies).toEqual([
      expect.stringMatching(
        /^__Host-genmesh=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      ),
    ]);
    const cookie = answer.cookies[0]?.split(";", 1)[0];
    const models = await askConsole(portOf(app), "/console/api/v1/models", { cookie, headers });
    expect(models.status).toBe(200);
    // The cookie's name of plain HTTP is not valid over HTTPS, because any neighbour could have set it.
    const renamed = cookie?.replace("__Host-", "");
    const other = await askConsole(portOf(app), "/console/api/session", {
      cookie: renamed,
      headers,
    });
    expect(other.status).toBe(401);
    // From a proxy that is not trusted, the header has no effect.
    const untrusted = await ask("/console/api/session", { ...session, headers });
    expect(untrusted.json.error.code).toBe("insecure_connection");
  });
});
