// The operator's routes for stored keys of upstreams: list, set, delete. A key goes in, and never comes out.

import type { FastifyInstance } from "fastify";
import { upstreamKeyDocument } from "#common/documents/upstream-key-document.ts";
import { requiredString } from "#common/words/body.ts";
import {
  maxStoredKeyChars,
  storedKeyName,
  storedKeyNameText,
} from "#common/words/stored-key-name.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";

/** Routes of stored keys. Setting one asks for the secret again, because requests are then sent with it. */
export function upstreamKeyRoutes(app: FastifyInstance, edge: Edge): void {
  const url = "/catalog/keys";
  adminRoute(app, edge, { method: "GET", url, handle: list });
  adminRoute(app, edge, { method: "POST", url, asksSecret: true, handle: set });
  adminRoute(app, edge, {
    ...{ method: "POST", url: `${url}/:name/delete`, asksSecret: true },
    handle: remove,
  });
}

async function list(call: AdminCall) {
  const { keys, isOn } = await call.peers.catalog.listUpstreamKeys({}, call.options);
  return { ...listOf(keys.map(upstreamKeyDocument)), isOn };
}

async function set(call: AdminCall) {
  const body = await call.body();
  const name = readName(requiredString(body, "name"));
  const key = requiredString(body, "key", { min: 1, max: maxStoredKeyChars });
  const { key: made } = await call.audited({ action: "catalog.set_key", target: name }, () =>
    call.peers.catalog.setUpstreamKey({ name, key, actor: call.actor }, call.options),
  );
  call.reply.code(201);
  return upstreamKeyDocument(made ?? refuse(ErrorReason.SERVICE_UNAVAILABLE));
}

async function remove(call: AdminCall) {
  const name = readName(call.param("name"));
  await call.audited({ action: "catalog.delete_key", target: name }, () =>
    call.peers.catalog.deleteUpstreamKey({ name }, call.options),
  );
  return { object: "upstream.key", name, deleted: true };
}

/** A text of another form may be a key in the wrong field. The audit log must not get it. */
function readName(name: string): string {
  if (storedKeyName.test(name)) return name;
  const message = `The parameter 'name' must be ${storedKeyNameText}.`;
  return refuse(ErrorReason.INVALID_VALUE, { param: "name", message });
}
