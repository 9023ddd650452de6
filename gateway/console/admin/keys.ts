import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance } from "fastify";
import {
  optionalArray,
  optionalNumber,
  optionalString,
  requiredString,
} from "#common/words/body.ts";
import { limitResetOf, limitResetWord } from "#common/words/key-limits.ts";
import { optionalOutsideUrl } from "#common/words/outside-url.ts";
import { maxWebhookUrlLength } from "#common/words/request-bounds.ts";
import { scopeNames } from "#common/words/scopes.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isoMs } from "#kit/base/iso-time.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ApiKey } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { KeyLimitReset, type Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { setLowBalance } from "../../keys.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";
import { keyDocument } from "./documents.ts";
import { maxAmount, pageSizes } from "./limits.ts";

/** Routes of the keys of all accounts. */
export function keyRoutes(app: FastifyInstance, edge: Edge): void {
  adminRoute(app, edge, { method: "GET", url: "/keys", handle: list });
  adminRoute(app, edge, { method: "GET", url: "/keys/:keyId", handle: show });
  adminRoute(app, edge, { method: "POST", url: "/keys", asksSecret: true, handle: create });
  adminRoute(app, edge, {
    ...{ method: "PATCH", url: "/keys/:keyId", asksSecret: true },
    handle: change,
  });
  adminRoute(app, edge, {
    ...{ method: "POST", url: "/keys/:keyId/rotate", asksSecret: true },
    handle: rotate,
  });
  adminRoute(app, edge, { method: "POST", url: "/keys/:keyId/revoke", handle: revoke });
}

async function list(call: AdminCall) {
  const { auth } = call.peers;
  const [accountId, query] = [call.query("account"), call.query("query")];
  if (accountId === "") {
    const found = await auth.listAllKeys({ ...call.page(), query }, call.options);
    return listOf(shown(call, found.keys), found.nextPageToken);
  }
  // At most 1,000: one answer has them all.
  const { pageSize, pageToken } = call.page();
  const { keys } = await auth.listKeys({ accountId }, call.options);
  const matching = keys.filter(({ keyId, name }) =>
    [keyId, name.toLowerCase()].some((text) => text.startsWith(query.toLowerCase())),
  );
  const from = matching.findIndex(({ keyId }) => keyId === pageToken) + 1;
  if (pageToken !== "" && from === 0) refuse(ErrorReason.INVALID_VALUE, { param: "after" });
  const page = matching.slice(from, from + pageSize);
  const isLast = from + pageSize >= matching.length;
  return listOf(shown(call, page), isLast ? "" : (page.at(-1)?.keyId ?? ""));
}

function shown({ clock }: AdminCall, keys: readonly ApiKey[]) {
  return keys.map((key) => keyDocument(key, clock.now()));
}

function one(call: AdminCall, key: ApiKey | undefined) {
  if (!key) throw new Error("auth answered no key and did not refuse");
  return keyDocument(key, call.clock.now());
}

/** A key with what a form to change it begins with, and a list does not show. */
async function inFull(call: AdminCall, key: ApiKey) {
  const { accountId, keyId, webhookUrl } = key;
  const asked = { accountId, keyIds: [keyId] };
  const { keys } = await call.peers.billing.getKeyUsage(asked, call.options);
  return {
    ...keyDocument(key, call.clock.now()),
    webhookUrl: webhookUrl || null,
    lowBalanceUsdMicros: keys[0]?.lowBalanceUsdMicros ?? null,
  };
}

async function show(call: AdminCall) {
  const query = call.param("keyId");
  // All ids have one length, so it begins no other; but keys may be named like it.
  const asked = { pageSize: pageSizes.most, query };
  const { keys } = await call.peers.auth.listAllKeys(asked, call.options);
  const key = keys.find(({ keyId }) => keyId === query) ?? refuse(ErrorReason.OBJECT_NOT_FOUND);
  return inFull(call, key);
}

/** What a change may name: as in PATCH /keys/{id} of the API, but for the name that the limit's reset has here. */
const changeable = [
  ...["name", "disabled", "scopes", "models", "limitUsdMicros", "limitReset", "expiresAt"],
  ...["requestsPerMinute", "webhookUrl", "lowBalanceUsdMicros"],
];

async function change(call: AdminCall) {
  const keyId = call.param("keyId");
  const asked = await call.body();
  const unknown = Object.keys(asked).find((name) => !changeable.includes(name));
  if (unknown !== undefined) {
    const message = `There is no such property here. There are: ${changeable.join(", ")}.`;
    refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param: unknown.slice(0, 64), message });
  }
  const { limitReset, ...others } = asked;
  const changes = { ...others, ...(limitReset === undefined ? {} : { limit_reset: limitReset }) };
  const changed = await call.audited(
    {
      ...{ action: "key.update", target: keyId },
      details: { changed: Object.keys(asked).join(", ") },
    },
    async () => {
      const body = new TextEncoder().encode(JSON.stringify(changes));
      const { key, lowBalance } = await call.peers.auth.updateKey({ keyId, body }, call.options);
      if (!key) throw new Error("auth answered no key and did not refuse");
      await setLowBalance(call, key, lowBalance, call.options);
      return key;
    },
    ({ accountId }) => ({ accountId }),
  );
  return inFull(call, changed);
}

async function create(call: AdminCall) {
  const body = await call.body();
  const accountId = requiredString(body, "accountId", { min: 1, max: 64 });
  const expiresAt = optionalString(body, "expiresAt", { max: 40 });
  const expiresMs =
    expiresAt === undefined
      ? undefined
      : (isoMs(expiresAt) ?? refuse(ErrorReason.INVALID_VALUE, { param: "expiresAt" }));
  const rule = { min: 0, max: maxAmount, integer: true };
  const limit = optionalNumber(body, "limitUsdMicros", rule);
  const reset = readReset(body);
  const rate = { min: 1, max: 1_000_000, integer: true };
  const wanted = {
    accountId,
    name: optionalString(body, "name", { max: 200 }) ?? "",
    scopes: readStrings(body, "scopes").map(toScope),
    allowedModels: readStrings(body, "models"),
    requestsPerMinute: optionalNumber(body, "requestsPerMinute", rate) ?? 0,
    webhookUrl: optionalOutsideUrl(body, "webhookUrl", maxWebhookUrlLength) ?? "",
    ...(expiresMs === undefined ? {} : { expireTime: timestampFromMs(expiresMs) }),
    ...(limit === undefined ? {} : { monthlyUsdMicrosLimit: BigInt(limit), limitReset: reset }),
  };
  const { key, secret } = await call.audited(
    {
      ...{ action: "key.create", accountId },
      details: { limitUsdMicros: limit ?? null, limitReset: limitResetWord(reset) },
    },
    () => call.peers.auth.createKey(wanted, call.options),
    (made) => ({ target: made.key?.keyId }),
  );
  call.reply.code(201);
  return { ...one(call, key), secret };
}

async function rotate(call: AdminCall) {
  const keyId = call.param("keyId");
  const rule = { min: 0, max: 2_592_000, integer: true };
  const graceSeconds = optionalNumber(await call.body(), "graceSeconds", rule);
  const { key, secret } = await call.audited(
    { action: "key.rotate", target: keyId, details: { graceSeconds: graceSeconds ?? null } },
    () =>
      call.peers.auth.rotateKey(
        { keyId, ...(graceSeconds === undefined ? {} : { graceSeconds }) },
        call.options,
      ),
    (made) => ({ accountId: made.key?.accountId }),
  );
  return { ...one(call, key), secret };
}

async function revoke(call: AdminCall) {
  const keyId = call.param("keyId");
  const { key } = await call.audited(
    { action: "key.revoke", target: keyId },
    () => call.peers.auth.revokeKey({ keyId }, call.options),
    (made) => ({ accountId: made.key?.accountId }),
  );
  return one(call, key);
}

/** As in PATCH /keys/{id}; not named: monthly. */
function readReset(body: JsonObject): KeyLimitReset {
  if (body.limitReset === null) return KeyLimitReset.NEVER;
  const word = optionalString(body, "limitReset", { max: 20 });
  if (word === undefined) return KeyLimitReset.MONTHLY;
  return limitResetOf(word) ?? refuse(ErrorReason.INVALID_VALUE, { param: "limitReset" });
}

function readStrings(body: JsonObject, name: string): string[] {
  return (optionalArray(body, name) ?? []).map((value, i) =>
    typeof value === "string"
      ? value
      : refuse(ErrorReason.INVALID_TYPE, { param: `${name}[${i}]` }),
  );
}

function toScope(name: string): Scope {
  const scope = Object.hasOwn(scopeNames, name) ? scopeNames[name] : undefined;
  return scope ?? refuse(ErrorReason.INVALID_VALUE, { param: "scopes" });
}
