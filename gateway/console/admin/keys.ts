// The operator's routes for the keys of all accounts: list, search, make, change, rotate, delete.

import type { FastifyInstance } from "fastify";
import { operatorsKeyDocument } from "#common/documents/key-document.ts";
import { optionalNumber, requiredString } from "#common/words/body.ts";
import { limitResetOf } from "#common/words/key-limits.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import type { ApiKey } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Edge } from "../../context.ts";
import { keyBodyFields, setLowBalance } from "../../keys.ts";
import { namedListOf } from "./account-names.ts";
import { type AdminCall, adminRoute } from "./context.ts";
import { keyPagesSearched, pageSizes } from "./limits.ts";

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
  if (accountId === "" && query !== "" && !query.startsWith(keyIdPrefix)) {
    return searchNames(call, query.toLowerCase());
  }
  if (accountId === "") {
    const found = await auth.listAllKeys({ ...call.page(), query }, call.options);
    return namedListOf(call, shown(call, found.keys), found.nextPageToken);
  }
  // One answer of auth has all keys, at most 1,000.
  const { pageSize, pageToken } = call.page();
  const { keys } = await auth.listKeys({ accountId }, call.options);
  const matching = keys.filter(({ keyId, name }) =>
    [keyId, name.toLowerCase()].some((text) => text.includes(query.toLowerCase())),
  );
  const from = matching.findIndex(({ keyId }) => keyId === pageToken) + 1;
  if (pageToken !== "" && from === 0) refuse(ErrorReason.INVALID_VALUE, { param: "after" });
  const page = matching.slice(from, from + pageSize);
  const isLast = from + pageSize >= matching.length;
  return namedListOf(call, shown(call, page), isLast ? "" : (page.at(-1)?.keyId ?? ""));
}

/** All ids of keys begin with it. Other texts are looked for in names. */
const keyIdPrefix = "key_";

/** Keys with a text in their name, among some thousands of keys. The rest is on the next pages. */
async function searchNames(call: AdminCall, text: string) {
  const { pageSize, pageToken } = call.page();
  const matching: ApiKey[] = [];
  let after = pageToken;
  for (let looked = 0; looked < keyPagesSearched; looked++) {
    const asked = { pageSize: pageSizes.most, pageToken: after };
    const found = await call.peers.auth.listAllKeys(asked, call.options);
    matching.push(...found.keys.filter(({ name }) => name.toLowerCase().includes(text)));
    after = found.nextPageToken;
    if (after === "" || matching.length >= pageSize) break;
  }
  return namedListOf(call, shown(call, matching), after);
}

function shown({ clock }: AdminCall, keys: readonly ApiKey[]) {
  return keys.map((key) => operatorsKeyDocument(key, clock.now()));
}

function one(call: AdminCall, key: ApiKey | undefined) {
  if (!key) throw new Error("auth answered no key and did not refuse");
  return operatorsKeyDocument(key, call.clock.now());
}

/** A key with the values at which a form to change it begins. A list does not show them. */
async function inFull(call: AdminCall, key: ApiKey) {
  const { accountId, keyId, webhookUrl } = key;
  const asked = { accountId, keyIds: [keyId] };
  const { keys } = await call.peers.billing.getKeyUsage(asked, call.options);
  return {
    ...operatorsKeyDocument(key, call.clock.now()),
    webhookUrl: webhookUrl || null,
    lowBalanceUsdMicros: keys[0]?.lowBalanceUsdMicros ?? null,
  };
}

async function show(call: AdminCall) {
  return inFull(call, await findKey(call, call.param("keyId")));
}

/** The key of any account with this id. Refuses with OBJECT_NOT_FOUND. */
export async function findKey(call: AdminCall, query: string): Promise<ApiKey> {
  // All ids have one length, so no id is the beginning of another. But the name of a key may be like an id.
  const asked = { pageSize: pageSizes.most, query };
  const { keys } = await call.peers.auth.listAllKeys(asked, call.options);
  return keys.find(({ keyId }) => keyId === query) ?? refuse(ErrorReason.OBJECT_NOT_FOUND);
}

/** A change has the fields and bounds of PATCH /keys/{id} of the API. */
async function change(call: AdminCall) {
  const keyId = call.param("keyId");
  const asked = await call.body();
  const changed = await call.audited(
    {
      ...{ action: "key.update", target: keyId },
      details: { changed: Object.keys(asked).filter(isKeyProperty).join(", ") },
    },
    async () => {
      const body = settingsBody(asked);
      const { key, lowBalance } = await call.peers.auth.updateKey({ keyId, body }, call.options);
      if (!key) throw new Error("auth answered no key and did not refuse");
      await setLowBalance(call, key, lowBalance, call.options);
      return key;
    },
    ({ accountId }) => ({ accountId }),
  );
  return inFull(call, changed);
}

/** A new key has the fields and bounds of POST /keys of the API, but `name` may be absent. */
async function create(call: AdminCall) {
  const body = await call.body();
  const accountId = requiredString(body, "accountId", { min: 1, max: 64 });
  const { accountId: _, ...wanted } = body;
  const { key, secret } = await call.audited(
    { action: "key.create", accountId, details: limitOf(wanted) },
    () => call.peers.auth.addKey({ accountId, body: settingsBody(wanted) }, call.options),
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

/** May the audit log name this property? It names only properties that a key has. */
function isKeyProperty(name: string): boolean {
  const others = ["expires_at", "disabled", "lowBalanceUsdMicros"];
  return Object.hasOwn(keyBodyFields, name) || others.includes(name);
}

/** The limit of a new key, for the audit log. A word that is not a limit is left out, because auth refuses it. */
function limitOf({
  limit,
  limitUsdMicros: micros = null,
  limit_reset: reset = "monthly",
}: JsonObject) {
  const isWord = reset === null || (typeof reset === "string" && limitResetOf(reset) !== undefined);
  return {
    ...(typeof limit === "number"
      ? { limit }
      : { limitUsdMicros: typeof micros === "number" ? micros : null }),
    ...(isWord ? { limit_reset: reset } : {}),
  };
}
