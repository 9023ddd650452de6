import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { authenticatorCode } from "../support/totp.ts";
import { startMediaWorld } from "./media-world.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, ...owned } = await startMediaWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => owned[Symbol.asyncDispose]());
ownWorldOnly();

/** The operator with the admin token, and one with a name. */
const token = operatorSession(world);
const anna = operatorSession(world);
const name = "anna@example.com";
const password = "pâté, horse & battery";
let uri = "";
let recoveryCodes: string[] = [];

beforeAll(async () => {
  if (isOwnWorld) await token.signIn();
});

/** Each code works once. The present one and the next one are both accepted. */
const code = (steps: 0 | 1) => authenticatorCode(uri, world.now() + steps * 30_000);
const secretIn = (of: string) => new URL(of).searchParams.get("secret");
const linkOf = ({ setUpPath }: { setUpPath: string }) =>
  Object.fromEntries(new URLSearchParams(new URL(setUpPath, token.origin).hash.slice(1)));
const proof = (of: string) => `${of} ${encodeURIComponent(password)}`;

/** The operators' last acts, newest first, as `ACTOR ACTION OUTCOME`. */
async function acts(): Promise<string[]> {
  const { json } = await token.get("/audit?limit=10");
  return json.data.map(
    (one: Record<string, string>) => `${one.actor} ${one.action} ${one.outcome}`,
  );
}

describe("an operator with a name", () => {
  test("is added by another one, and set up with a link that works once", async () => {
    expect((await token.post("/operators", { name }, { secret: "" })).code).toBe("secret_required");
    const made = await token.post("/operators", { name: "Anna@Example.com" });
    expect(made).toMatchObject({ status: 201, json: { name, state: "pending" } });
    expect((await token.post("/operators", { name })).code).toBe("state_conflict");
    expect((await token.post("/operators", { name: "a b" })).json.error).toMatchObject({
      ...{ code: "invalid_value", param: "name" },
    });
    const link = linkOf(made.json);
    const wrong = { ...link, token: `${link.token}x` };
    expect((await anna.ask("POST", "/set-up/begin", wrong)).status).toBe(404);
    const needs = await anna.ask("POST", "/set-up/begin", link);
    expect(needs.json).toMatchObject({ needsPassword: true, needsTotp: true });
    uri = needs.json.totpUri;
    const given = { ...link, password, totpSecret: secretIn(uri), code: code(0) };
    const short = await anna.ask("POST", "/set-up", { ...given, password: "short" });
    expect(short.json.error).toMatchObject({ code: "invalid_value", param: "password" });
    const miscopied = await anna.ask("POST", "/set-up", { ...given, code: "000000" });
    expect(miscopied.json.error).toMatchObject({ code: "invalid_value", param: "code" });
    const done = await anna.ask("POST", "/set-up", given);
    expect(done.status).toBe(200);
    recoveryCodes = done.json.recoveryCodes;
    expect((await anna.ask("POST", "/set-up", given)).status).toBe(404);
    expect((await token.get("/operators")).json.data).toEqual([
      expect.objectContaining({ name, state: "active", recoveryCodes: 10, linkEndsAt: null }),
    ]);
    expect((await acts())[0]).toBe(`operator ${name} operator.set_up done`);
  });

  test("signs in with password and code, and the audit log has the name", async () => {
    const signIn = { name: name.toUpperCase(), password, code: code(1) };
    expect((await anna.ask("POST", "/session", { ...signIn, password: "x" })).status).toBe(401);
    expect((await anna.ask("POST", "/session", { name, password })).code).toBe(
      "missing_required_parameter",
    );
    const begun = await anna.ask("POST", "/session", signIn);
    expect(begun).toMatchObject({
      ...{ status: 201, json: { role: "operator", operatorName: name, oidc: false } },
    });
    const again = await token.ask("POST", "/session", signIn, { as: "none" });
    expect(again.code).toBe("invalid_api_key");
    expect(await acts()).toContain(`operator ${name} console.sign_in done`);
  });

  test("gives password and code again before money is moved, which counts for a while", async () => {
    const order = { name: "B", usdMicros: 5, operationId: "named-1" };
    const told = await anna.post("/accounts", order, { secret: "" });
    expect(told.code).toBe("secret_required");
    for (const secret of [adminToken, proof("000000"), `${code(1)} wrong`, "x %E0"]) {
      expect((await anna.post("/accounts", order, { secret })).code, secret).toBe(
        "secret_required",
      );
    }
    expect(
      (await anna.post("/accounts", order, { secret: proof(recoveryCodes[0] ?? "") })).status,
    ).toBe(201);
    const next = { ...order, operationId: "named-2" };
    expect((await anna.post("/accounts", next, { secret: "" })).status).toBe(201);
    expect((await acts())[0]).toBe(`operator ${name} account.create done`);
  });

  test("changes the own second factor, recovery codes and password; the latter ends the session", async () => {
    expect((await anna.get("/own-operator")).json).toMatchObject({ name, recoveryCodes: 9 });
    expect((await token.get("/own-operator")).status).toBe(404);
    const fresh = await anna.post("/own-operator/recovery-codes", {});
    expect(fresh.json.recoveryCodes).toHaveLength(10);
    expect(fresh.json.recoveryCodes).not.toContain(recoveryCodes[0]);
    uri = (await anna.get("/own-operator/totp")).json.uri;
    const wrong = { totpSecret: secretIn(uri), code: "000000" };
    expect((await anna.post("/own-operator/totp", wrong)).status).toBe(400);
    const made = await anna.post("/own-operator/totp", { ...wrong, code: code(0) });
    recoveryCodes = made.json.recoveryCodes;
    const changed = await anna.post("/own-operator/password", { password: `${password}!` });
    expect(changed.status).toBe(200);
    expect((await anna.get("/own-operator")).status).toBe(401);
  });

  test("has no session after it is disabled, or its password is reset", async () => {
    const path = `/operators/${encodeURIComponent(name)}`;
    for (const [at, act] of ["disable", "reset-password"].entries()) {
      const signIn = { name, password: `${password}!`, code: recoveryCodes[at] };
      expect((await anna.ask("POST", "/session", signIn)).status).toBe(201);
      expect((await anna.get("/accounts")).status).toBe(200);
      expect((await token.post(`${path}/${act}`, {})).status).toBe(200);
      expect((await anna.get("/accounts")).status).toBe(401);
      expect((await token.post(`${path}/enable`, {})).status).toBe(200);
      expect((await anna.get("/accounts")).status).toBe(401);
    }
  });

  test("is removed, and the last one may go", async () => {
    const path = `/operators/${encodeURIComponent(name)}`;
    expect((await token.post(`${path}/remove`, {})).json).toMatchObject({ deleted: true });
    expect((await token.post(`${path}/remove`, {})).status).toBe(200);
    for (const act of ["enable", "disable", "reset-password", "reset-totp"]) {
      expect((await token.post(`${path}/${act}`, {})).status, act).toBe(404);
    }
    expect((await token.get("/operators")).json.data).toEqual([]);
  });
});

test("callers' sessions and strangers have none of these routes", async () => {
  const caller = await world.caller();
  const member = operatorSession(world);
  await member.ask("POST", "/session", { secret: caller.key });
  const routes = [
    ...["GET /operators", "POST /operators", "POST /operators/a/enable"],
    ...["POST /operators/a/disable", "POST /operators/a/remove", "POST /operators/a/reset-totp"],
    ...["POST /operators/a/reset-password", "GET /own-operator", "GET /own-operator/totp"],
    ...["POST /own-operator/password", "POST /own-operator/totp"],
    "POST /own-operator/recovery-codes",
  ];
  for (const route of routes) {
    const [method = "", path = ""] = route.split(" ");
    const body = method === "GET" ? undefined : {};
    expect((await member.ask(method, `/admin${path}`, body)).status, route).toBe(403);
    const stranger = await member.ask(method, `/admin${path}`, body, { as: "genmesh=x" });
    expect(stranger.status, route).toBe(401);
  }
});
