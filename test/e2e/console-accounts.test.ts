import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const { get, patch, post, signIn } = operatorSession(world);
beforeAll(async () => {
  if (isOwnWorld) await signIn();
});

test("an account's rate bounds all of its keys together within a second, and can be lifted", async () => {
  const caller = await world.caller();
  const { accountId } = caller;
  const other = await world.withKey(caller, {});
  const path = `/accounts/${accountId}`;
  expect((await patch(path, { requestsPerMinute: 3 }, { secret: "" })).code).toBe(
    "secret_required",
  );
  const set = await patch(path, { requestsPerMinute: 3 });
  expect(set.json).toMatchObject({ id: accountId, requestsPerMinute: 3, rateIsSet: true });
  const overRate = "429 rate_limit_error rate_limit_exceeded null";
  for (const one of [caller, other]) {
    await until("the rate", async () => refusalOf(await one.get("/models")) === overRate, {
      withinMs: 60_000,
    });
  }
  expect((await patch(path, { requestsPerMinute: null })).json).toMatchObject({
    ...{ requestsPerMinute: 6_000, rateIsSet: false },
  });
  await until("the default", async () => (await other.get("/models")).status === 200, {
    withinMs: 60_000,
  });
});

test("a wrong change is refused with its field, and changes nothing", async () => {
  const { accountId } = await world.caller();
  const path = `/accounts/${accountId}`;
  const before = (await get(path)).json;
  const wrong = async (body: object) => {
    const { status, json } = await patch(path, body);
    return [status, json.error.code, json.error.param];
  };
  expect(await wrong({ requestsPerMinute: 0 })).toEqual([
    ...[400, "invalid_value", "requestsPerMinute"],
  ]);
  expect(await wrong({ requestsPerMinute: "9" })).toEqual([
    ...[400, "invalid_type", "requestsPerMinute"],
  ]);
  expect(await wrong({ requestsPerMinute: 9, suspended: true })).toEqual([
    ...[400, "unsupported_parameter", "suspended"],
  ]);
  expect((await get(path)).json).toEqual(before);
  expect((await patch("/accounts/acct_none", { requestsPerMinute: 9 })).code).toBe(
    "object_not_found",
  );
  await post(`${path}/close`, { confirm: accountId });
  expect((await patch(path, { requestsPerMinute: 9 })).code).toBe("state_conflict");
});
