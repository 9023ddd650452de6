import { afterAll, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { refusalOf } from "../e2e/caller.ts";
import { send } from "../e2e/key-owners.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const forbidden = "403 permission_error permission_denied";
const elsewhere = { webhookUrl: "https://elsewhere.example.com/hook" };

test("a key that manages others is told nothing of what they make", async () => {
  const maker = await world.caller();
  const manager = await world.withKey(maker, { scopes: [Scope.KEYS] });
  const path = `/keys/${maker.keyId}`;
  expect(refusalOf(await send(manager, "PATCH", path, elsewhere))).toContain(forbidden);
  const { json } = await send(manager, "GET", path);
  expect(json.data.webhookUrl).toBeNull();
  // Changes that give no further right are allowed: to disable a key, and to name it.
  expect((await send(manager, "PATCH", path, { name: "main" })).status).toBe(200);
  // Removing an address sends nothing to any address.
  expect((await send(manager, "PATCH", path, { webhookUrl: null })).status).toBe(200);

  const equal = await world.withKey(maker, {
    scopes: [Scope.KEYS, Scope.IMAGES, Scope.TEXT, Scope.MODELS],
  });
  const worker = await world.withKey(maker, { scopes: [Scope.IMAGES] });
  const own = await send(equal, "PATCH", `/keys/${worker.keyId}`, elsewhere);
  expect([own.status, own.json.data?.webhookUrl]).toEqual([200, elsewhere.webhookUrl]);
});
