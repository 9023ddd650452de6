import { afterAll, beforeAll, expect, test } from "vitest";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const { get, post, signIn } = operatorSession(world);
beforeAll(async () => {
  if (isOwnWorld) await signIn();
});

test("take funds back that were added by mistake", async () => {
  const { accountId: id } = await world.caller({ usdMicros: 1_000n });
  await post(`/accounts/${id}/top-up`, { usdMicros: 500, operationId: "wrong" });
  const path = `/accounts/${id}/take-back`;
  const back = { unit: "usd_micros", entry: 2, operationId: "back-1", amount: 400 };
  expect((await post(path, back, { secret: "" })).code).toBe("secret_required");
  const taken = { object: "take_back", amount: 400, entry: 2, takeBackEntry: 3 };
  expect((await post(path, back)).json).toMatchObject({ ...taken, replayed: false });
  expect((await post(path, back)).json).toMatchObject({ ...taken, replayed: true });
  const wrong = async (more: object) => {
    const { status, json } = await post(path, { ...back, operationId: "back-2", ...more });
    return [status, json.error.code, json.error.param];
  };
  expect(await wrong({ amount: 101 })).toEqual([400, "invalid_value", "amount"]);
  expect(await wrong({ upTo: "yes" })).toEqual([400, "invalid_type", "upTo"]);
  expect(await wrong({ entry: 3 })).toEqual([404, "object_not_found", null]);
  expect(await wrong({ entry: undefined })).toEqual([
    ...[400, "missing_required_parameter", "entry"],
  ]);
  expect(await wrong({ amount: 1, operationId: "back-1" })).toEqual([409, "state_conflict", null]);
  const rest = { ...back, operationId: "back-3", amount: undefined, upTo: true };
  expect((await post(path, rest)).json).toMatchObject({ amount: 100 });
  const { data } = (await get(`/accounts/${id}/entries?limit=1`)).json;
  expect(data).toMatchObject([{ kind: "grant", freeDelta: -100, takeBackOf: 2 }]);
  const { lines } = await world.admin.billing.listLines({ accountId: id, kinds: ["grant"] });
  expect(lines).toMatchObject([
    { amount: -100n, balance: 1_000n, takeBackOf: 2n },
    { amount: -400n, balance: 1_100n, takeBackOf: 2n },
    { amount: 500n, takeBackOf: 0n },
    { amount: 1_000n, takeBackOf: 0n },
  ]);
  expect((await get(`/accounts/${id}`)).json.usdMicros).toMatchObject({ granted: 1_000 });
  expect((await get(`/ledger/audit?account=${id}`)).json).toMatchObject({ ok: true });
  const { json: log } = await get(`/audit?account=${id}&limit=1`);
  expect(log.data[0]).toMatchObject({
    ...{ action: "account.take_back", target: "entry 2", outcome: "done" },
    details: { unit: "usd_micros", amount: null, operationId: "back-3", upTo: true },
  });
});
