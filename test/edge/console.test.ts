import { createHash } from "node:crypto";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { askConsole, type ConsoleRequest, ownPage, signIn } from "./console-client.ts";
import { type EdgeWorld, edgeAdminToken, startEdge } from "./world.ts";

const content = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>');
let edge: EdgeWorld;
beforeEach(async () => {
  edge = await startEdge({
    settings: { console: { operatorToken: edgeAdminToken } },
    media: {
      locateFile: () => ({
        blobKey: "uploads/1",
        mimeType: "image/svg+xml",
        sizeBytes: BigInt(content.length),
        sha256: createHash("sha256").update(content).digest("hex"),
        fileName: "a.svg",
        createTime: timestampFromMs(0),
      }),
      submitJob: (request) => {
        submitted.push(request.publicBaseUrl);
        return {
          job: {
            jobId: "job_1",
            kind: request.kind,
            status: JobStatus.QUEUED,
            createTime: timestampFromMs(0),
          },
        };
      },
      deleteFile: () => ({}),
    },
    billing: { getKeyUsage: () => ({ keys: [] }) },
    called: (method, headers) => calls.push([method, headers.get("x-request-id")]),
  });
});
afterEach(() => edge[Symbol.asyncDispose]());

const submitted: string[] = [];
const calls: [method: string, requestId: string | null][] = [];
const ask = (path: string, given: ConsoleRequest = {}) => askConsole(edge.port, path, given);
const post = (path: string, body: unknown, given: ConsoleRequest = {}) =>
  ask(path, { method: "POST", body, ...given, headers: { ...ownPage, ...given.headers } });
const portOf = (app: EdgeWorld["app"]) => (app.server.address() as AddressInfo).port;
const sessionIsAlive = async (cookie: string) =>
  (await ask("/console/api/session", { cookie })).status === 200;

describe("signing in", () => {
  test("answers the session, and a cookie that scripts cannot read", async () => {
    const answer = await post("/console/api/session", { secret: edge.key });
    expect(answer).toMatchObject({
      status: 201,
      json: {
        object: "console.session",
        role: "member",
        accountId: edge.accountId,
        keyId: edge.keyId,
        keyName: "",
        models: [],
        oidc: false,
      },
    });
    expect(answer.json.scopes).toContain("text");
    const lasts = (end: string) => Date.parse(answer.json[end]) - Date.parse(answer.json.createdAt);
    expect([lasts("idleEndsAt"), lasts("endsAt")]).toEqual([30 * 60_000, 8 * 3_600_000]);
    expect(answer.cookies).toEqual([
      expect.stringMatching(/^genmesh=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict$/),
    ]);
    const cookie = answer.cookies[0]?.split(";", 1)[0];
    expect((await ask("/console/api/session", { cookie })).json).toMatchObject({
      keyId: edge.keyId,
    });
  });

  test("ends the session that the browser had, by a call of this request", async () => {
    const former = await signIn(edge.port, edge.key);
    calls.length = 0;
    const answer = await post("/console/api/session", { secret: edge.key }, { cookie: former });
    expect(answer.status).toBe(201);
    expect(await sessionIsAlive(former)).toBe(false);
    expect(calls).toContainEqual(["EndSession", answer.headers["x-request-id"]]);
  });

  test("a key with the scope `keys` is an owner's, the admin token an operator's", async () => {
    const owner = await edge.makeKey({ scopes: [Scope.KEYS, Scope.TEXT] });
    expect((await post("/console/api/session", { secret: owner })).json.role).toBe("owner");
    const operator = await post("/console/api/session", { secret: edgeAdminToken });
    expect(operator.json).toMatchObject({
      role: "operator",
      accountId: null,
      keyId: null,
      scopes: [],
    });
    const lasts = Date.parse(operator.json.endsAt) - Date.parse(operator.json.createdAt);
    expect(lasts).toBe(4 * 3_600_000);
  });

  test("where the gateway has no admin token, there are no operators", async () => {
    const app = await edge.another({ console: {} });
    const told = await askConsole(portOf(app), "/console/api/sign-in");
    expect(told.json).toEqual({ object: "console.sign_in", oidc: null, operator: false });
    await expect(signIn(portOf(app), edgeAdminToken)).rejects.toThrow(/401/);
    // A session of another gateway's operator is not valid here.
    const cookie = await signIn(edge.port, edgeAdminToken);
    const session = await askConsole(portOf(app), "/console/api/session", { cookie });
    expect(session.status).toBe(401);
    const admin = await askConsole(portOf(app), "/console/api/admin/accounts", { cookie });
    expect(admin.status).toBe(404);
  });

  test("every wrong secret is refused with the same words", async () => {
    const revoked = await edge.admin.createKey({ accountId: edge.accountId });
    await edge.admin.revokeKey({ keyId: revoked.key?.keyId ?? "" });
    const rotated = await edge.admin.createKey({ accountId: edge.accountId });
    await edge.admin.rotateKey({ keyId: rotated.key?.keyId ?? "", graceSeconds: 60 });
    const wrong = ["", "x", "x".repeat(40), `${edgeAdminToken}x`, revoked.secret, rotated.secret];
    const told = new Set<string>();
    for (const secret of wrong) {
      const { status, text, cookies } = await post("/console/api/session", { secret });
      expect(cookies).toEqual([]);
      told.add(`${status} ${text}`);
    }
    expect([...told]).toEqual([expect.stringMatching(/^401 .*"invalid_api_key"/)]);
  });

  test("a session from before a sign-in opens nothing after it, and none is taken from the browser", async () => {
    const first = await signIn(edge.port, edge.key);
    const second = await signIn(edge.port, edge.key, { cookie: first });
    expect(second).not.toBe(first);
    expect(await sessionIsAlive(first)).toBe(false);
    expect(await sessionIsAlive(second)).toBe(true);
    const planted = `genmesh=${"A".repeat(43)}`;
    const third = await signIn(edge.port, edge.key, { cookie: planted });
    expect(third).not.toBe(planted);
    expect(await sessionIsAlive(planted)).toBe(false);
    // Another program of the host has set a second cookie of the same name, so neither is valid.
    expect(await sessionIsAlive(`${planted}; ${third}`)).toBe(false);
  });

  test("signing out ends it, again and again", async () => {
    const cookie = await signIn(edge.port, edge.key);
    for (let i = 0; i < 2; i++) {
      const out = await ask("/console/api/session", { method: "DELETE", cookie, headers: ownPage });
      expect(out.status).toBe(204);
      expect(out.cookies[0]).toMatch(/^genmesh=; .*Max-Age=0$/);
    }
    expect(await sessionIsAlive(cookie)).toBe(false);
  });

  test("after ten failures an address waits a minute, another one does not", async () => {
    for (let i = 0; i < 10; i++) {
      expect((await post("/console/api/session", { secret: `wrong ${i}` })).status).toBe(401);
    }
    const late = await post("/console/api/session", { secret: edge.key });
    expect(late).toMatchObject({ status: 429, json: { error: { code: "rate_limit_exceeded" } } });
    expect(Number(late.headers["retry-after"])).toBeGreaterThan(30);
    expect((await post("/console/api/session", { secret: edgeAdminToken })).status).toBe(429);
    // A user with a session keeps it. A user behind a trusted proxy has an address of its own.
    const proxied = await edge.another({ console: {}, trustProxy: "127.0.0.1" });
    const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
    await signIn(portOf(proxied), edge.key, from("192.0.2.7"));
    await edge.clock.leap(60_000);
    await signIn(edge.port, edge.key);
  });

  test("what is no sign-in is told so", async () => {
    const session = "/console/api/session";
    expect((await post(session, {})).json.error.code).toBe("missing_required_parameter");
    expect((await post(session, { secret: 1 })).json.error.code).toBe("invalid_type");
    expect((await post(session, "{")).json.error.code).toBe("invalid_json");
    expect((await post(session, { secret: "x".repeat(5_000) })).status).toBe(413);
  });
});

describe("what ends a key ends its sessions with the next request", () => {
  test.each<[string, (keyId: string) => Promise<unknown>]>([
    ["revoked", (keyId) => edge.admin.revokeKey({ keyId })],
    ["rotated", (keyId) => edge.admin.rotateKey({ keyId, graceSeconds: 3_600 })],
  ])("%s", async (_how, end) => {
    const cookie = await signIn(edge.port, edge.key);
    expect((await ask("/console/api/v1/models", { cookie })).status).toBe(200);
    await end(edge.keyId);
    expect((await ask("/console/api/v1/models", { cookie })).status).toBe(401);
    expect(await sessionIsAlive(cookie)).toBe(false);
  });

  test("a rolling restart ends none: any gateway serves any session", async () => {
    const [one, two] = [await edge.another(), await edge.another()];
    const cookie = await signIn(portOf(one), edge.key);
    await one.close();
    const asked = await askConsole(portOf(two), "/console/api/v1/models", { cookie });
    expect(asked.status).toBe(200);
    const three = await edge.another();
    await askConsole(portOf(three), "/console/api/session", {
      method: "DELETE",
      cookie,
      headers: ownPage,
    });
    const after = await askConsole(portOf(two), "/console/api/v1/models", { cookie });
    expect(after.status).toBe(401);
  });
});

describe("key and cookie do not mix", () => {
  test("/v1 takes no cookie, /console/api no key", async () => {
    const cookie = await signIn(edge.port, edge.key);
    const authorization = `Bearer ${edge.key}`;
    expect((await ask("/v1/models", { cookie })).status).toBe(401);
    expect((await ask("/v1/models", { headers: { authorization } })).status).toBe(200);
    const path = "/console/api/v1/models";
    expect((await ask(path, { headers: { authorization } })).status).toBe(401);
    expect((await ask("/console/api/session", { headers: { authorization } })).status).toBe(401);
    // With both, each path uses only its own.
    const wrong = { authorization: `Bearer ${"x".repeat(40)}` };
    expect((await ask(path, { cookie, headers: wrong })).status).toBe(200);
    expect((await ask("/v1/models", { cookie, headers: wrong })).status).toBe(401);
    // The session's id is no key either.
    const id = cookie.split("=")[1];
    const bearer = { authorization: `Bearer ${id}` };
    expect((await ask("/v1/models", { headers: bearer })).status).toBe(401);
  });

  test("rate, scope and suspension of the key hold for its sessions", async () => {
    const secret = await edge.makeKey({ scopes: [Scope.MODELS], requestsPerMinute: 2 });
    const cookie = await signIn(edge.port, secret);
    expect((await ask("/console/api/v1/billing", { cookie })).json.error.code).toBe(
      "permission_denied",
    );
    expect((await ask("/console/api/v1/models", { cookie })).status).toBe(200);
    expect((await ask("/console/api/v1/models", { cookie })).status).toBe(429);
    const all = await signIn(edge.port, edge.key);
    await edge.admin.setAccountState({ accountId: edge.accountId, suspended: true });
    expect((await ask("/console/api/v1/models", { cookie: all })).status).toBe(200);
    const deleted = await ask("/console/api/v1/files/file_1", {
      method: "DELETE",
      cookie: all,
      headers: ownPage,
    });
    expect(deleted.json.error.code).toBe("account_suspended");
  });

  test("an operator has no key, a member no operator's power", async () => {
    const operator = await signIn(edge.port, edgeAdminToken);
    const models = await ask("/console/api/v1/models", { cookie: operator });
    expect(models).toMatchObject({ status: 403, json: { error: { code: "permission_denied" } } });
    const member = await signIn(edge.port, edge.key);
    const admin = await ask("/console/api/admin/nothing", { cookie: member });
    expect(admin).toMatchObject({ status: 403, json: { error: { code: "permission_denied" } } });
    expect((await ask("/console/api/admin/nothing")).status).toBe(401);
    expect((await ask("/console/api/admin/nothing", { cookie: operator })).status).toBe(404);
  });
});

describe("the secret is asked again", () => {
  test("before a key is made, changed or rotated, or the webhooks' secret is shown, and a wrong one counts as a failed sign-in", async () => {
    const secret = await edge.makeKey({ scopes: [Scope.KEYS, Scope.TEXT] });
    const cookie = await signIn(edge.port, secret);
    const make = (sent?: string) =>
      post(
        "/console/api/v1/keys",
        { name: "app" },
        { cookie, headers: sent === undefined ? {} : { "x-console-secret": sent } },
      );
    expect(await make()).toMatchObject({
      status: 403,
      json: { error: { code: "secret_required" } },
    });
    expect((await make(edge.key)).json.error.code).toBe("secret_required");
    const made = await make(secret);
    expect(made).toMatchObject({ status: 201, json: { data: { name: "app" } } });
    const rotate = await post(`/console/api/v1/keys/${made.json.data.id}/rotate`, undefined, {
      cookie,
    });
    expect(rotate.json.error.code).toBe("secret_required");
    const widened = await post(
      `/console/api/v1/keys/${made.json.data.id}`,
      { scopes: ["text", "keys"] },
      { cookie, method: "PATCH" },
    );
    expect(widened.json.error.code).toBe("secret_required");
    const keeper = await edge.makeKey({ scopes: [Scope.WEBHOOKS] });
    const own = { cookie: await signIn(edge.port, keeper) };
    const webhooks = "/console/api/v1/webhooks/secret";
    expect((await post(webhooks, undefined, { ...own, method: "GET" })).json.error.code).toBe(
      "secret_required",
    );
    const rotation = await post(`${webhooks}/rotate`, undefined, own);
    expect(rotation.json.error.code).toBe("secret_required");
    for (let i = 0; i < 9; i++) await make(`wrong ${i}`);
    expect((await make(secret)).status).toBe(429);
    // On /v1 no session is looked up, because each request has the key.
    const direct = await edge.post(
      "/v1/keys",
      { name: "b" },
      { authorization: `Bearer ${secret}` },
    );
    expect(direct.status).toBe(201);
  });
});

describe("what answers carry", () => {
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; " +
    "img-src 'self' blob:; media-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

  test("policy, nosniff, no-referrer and no-store on pages, answers and refusals", async () => {
    const cookie = await signIn(edge.port, edge.key);
    const paths = [
      "/console/",
      "/console/keys",
      "/console",
      "/console/nothing.js",
      "/console/assets/nothing.js",
      "/console/api/sign-in",
      "/console/api/session",
      "/console/api/nothing",
      "/console/api/v1/models",
      "/console/api/v1/nothing",
    ];
    for (const path of paths) {
      for (const sent of [cookie, undefined]) {
        const { headers } = await ask(path, { cookie: sent });
        expect({ path, headers }).toMatchObject({
          headers: {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-resource-policy": "same-origin",
          },
        });
      }
    }
  });

  test("a file runs nothing: it is in a sandbox, also under the cookie's origin", async () => {
    await edge.blobs.put("uploads/1", Readable.from([content]));
    const cookie = await signIn(edge.port, edge.key);
    const { status, headers } = await ask("/console/api/v1/files/file_1/content", { cookie });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-security-policy": "default-src 'none'; sandbox",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
  });

  test("the documentation is in a sandbox too", async () => {
    const { headers } = await ask("/docs/");
    expect(headers["content-security-policy"]).toMatch(/; sandbox allow-scripts$/);
  });

  test("URLs of files lead to where the cookie counts, also where the API has a public URL", async () => {
    const app = await edge.another({ console: {}, publicUrl: "https://api.example.com" });
    submitted.length = 0;
    const port = portOf(app);
    const cookie = await signIn(port, edge.key);
    const job = await askConsole(port, "/console/api/v1/images/generations", {
      method: "POST",
      body: { prompt: "x" },
      cookie,
      headers: ownPage,
    });
    const base = `http://127.0.0.1:${port}/console/api/v1`;
    expect(job.json.statusUrl).toBe(`${base}/images/generations/job_1`);
    // A webhook's receiver has a key and no cookie.
    expect(submitted).toEqual(["https://api.example.com/v1"]);
  });
});

describe("where the console is off", () => {
  test("there is nothing", async () => {
    const off = await startEdge();
    try {
      for (const path of [
        "/console",
        "/console/",
        "/console/api/session",
        "/console/api/v1/models",
      ]) {
        const answer = await askConsole(off.port, path);
        expect({ path, status: answer.status }).toEqual({ path, status: 404 });
      }
    } finally {
      await off[Symbol.asyncDispose]();
    }
  });
});
