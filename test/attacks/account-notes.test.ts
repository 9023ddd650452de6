import { afterAll, beforeAll, expect, test } from "vitest";
import { scopeNames } from "#common/words/scopes.ts";
import { committedDescription } from "../../gateway/openapi.ts";
import type { Caller } from "../e2e/caller.ts";
import { send } from "../e2e/key-owners.ts";
import { adminToken, operatorSession } from "../e2e/operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "../e2e/world.ts";

const world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const operator = operatorSession(world);
const settings = { name: "An account", notes: "owes-us-a-crab", requestsPerMinute: 500 };
const grant = { monthlyGrantCredits: 3 };
let owner: Caller;
let session: string;

beforeAll(async () => {
  if (!isOwnWorld) return;
  owner = await world.withKey(await world.caller(), { scopes: Object.values(scopeNames) });
  await operator.ask("POST", "/session", { secret: owner.key }, { as: "" });
  session = operator.cookie;
  operator.cookie = "";
  await operator.signIn();
  const { status } = await operator.patch(`/accounts/${owner.accountId}`, {
    ...settings,
    ...grant,
  });
  expect(status).toBe(200);
});

test("no answer to a key with every scope has the operators' notes about its account", async () => {
  const { paths }: { paths: Record<string, object> } = JSON.parse(await committedDescription());
  const lists = Object.entries(paths).flatMap(([path, ways]) =>
    "get" in ways && !path.includes("{") ? [path] : [],
  );
  expect(lists.length).toBeGreaterThan(15);
  for (const path of lists) {
    const answers = [
      await fetch(`${owner.baseUrl}${path}`, { headers: { authorization: `Bearer ${owner.key}` } }),
      await fetch(`${operator.origin}/console/api/v1${path}`, { headers: { cookie: session } }),
    ];
    for (const answer of answers) expect(await answer.text(), path).not.toContain("crab");
  }
});

test("an account's own key reads and changes nothing of what operators set", async () => {
  const { accountId } = owner;
  const path = `/admin/accounts/${accountId}`;
  const change = {
    ...{ name: "Mine", notes: null, requestsPerMinute: null },
    ...{ monthlyGrantUsdMicros: 9_000_000, monthlyGrantCredits: 9_000 },
  };
  for (const [method, body] of [
    ["GET", undefined],
    ["PATCH", change],
  ] as const) {
    const { status } = await operator.ask(method, path, body, { as: session, secret: owner.key });
    expect([method, status]).toEqual([method, 403]);
  }
  for (const route of [`/accounts/${accountId}`, "/account", `/admin/accounts/${accountId}`]) {
    expect((await send(owner, "PATCH", route, change)).status, route).toBe(404);
  }
  expect((await operator.get(`/accounts/${accountId}`)).json).toMatchObject({
    ...{ ...settings, monthlyGrant: { usdMicros: 0, credits: 3 } },
  });
});
