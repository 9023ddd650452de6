import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { startWorld, type World } from "../e2e/world.ts";

const refusal = "413 invalid_request_error payload_too_large null";

let world: World;
let owner: Caller;
let scopeless: Caller;
beforeAll(async () => {
  world = await startWorld();
  const first = await world.caller();
  owner = await world.withKey(first, { scopes: [Scope.KEYS] });
  scopeless = await world.withKey(first, { scopes: [Scope.TEXT] });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const send = (caller: Caller, method: string, path: string, body: string, headers = {}) =>
  fetch(`${caller.baseUrl}${path}`, {
    method,
    body,
    headers: {
      authorization: `Bearer ${caller.key}`,
      "content-type": "application/json",
      ...headers,
    },
  }).then(async (answer) => refusalOf({ status: answer.status, json: await answer.json() }));

const names = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, 0])));

describe.each([
  ["a body of 64 KiB and a byte", `{"name":"${"x".repeat(64 * 1024 - 10)}"}`],
  ["a body of 6,000 names", names(6_000)],
  ["a body of 501 names", names(501)],
])("%s", (_, body) => {
  test.each([
    ["POST", () => "/keys"],
    ["POST", () => `/keys/${owner.keyId}/rotate`],
    ["PATCH", () => `/keys/${owner.keyId}`],
    ["PATCH", () => "/billing/alerts"],
  ])("is refused unparsed: %s %s", async (method, path) => {
    expect(await send(owner, method, path(), body)).toBe(refusal);
  });
  test("is refused unparsed where the missing scope would be told later", async () => {
    const headers = { "idempotency-key": "one" };
    expect(await send(scopeless, "POST", "/keys", body, headers)).toBe(refusal);
  });
});

test("the longest key there may be is made", async () => {
  const models = Array.from({ length: 200 }, (_, at) => `model-${at}-`.padEnd(190, "x"));
  const body = { name: "n".repeat(200), models, scopes: ["keys"] };
  const answer = await owner.post("/keys", body);
  expect(answer.status).toBe(201);
});
