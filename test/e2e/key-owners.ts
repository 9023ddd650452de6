import { expect } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "./caller.ts";
import type { NewCaller, World } from "./world.ts";

const ownerScopes = [Scope.KEYS, Scope.TEXT, Scope.MODELS, Scope.BILLING];

/** Owners of accounts in a world, and the keys that they make. */
export function keyManagers(world: World) {
  return {
    /** A key that manages the keys of a new account. */
    newOwner: async (begin: NewCaller = {}, key: Parameters<World["withKey"]>[1] = {}) =>
      world.withKey(await world.caller(begin), { scopes: ownerScopes, ...key }),
    /** Makes a key over HTTP. */
    async make(owner: Caller, fields: object = {}) {
      const { status, json } = await owner.post("/keys", { name: "made", ...fields });
      expect(status, JSON.stringify(json)).toBe(201);
      const who = { accountId: owner.accountId, keyId: json.data.id };
      return { data: json.data, caller: world.holding(json.key, who) };
    },
  };
}

/** Sends any method, with a body where it is given. */
export async function send(who: Caller, method: string, path: string, body?: unknown) {
  const response = await fetch(`${who.baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${who.key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}
