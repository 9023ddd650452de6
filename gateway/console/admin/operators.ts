// The operator's routes for people who sign in by name, and for the signed-in person's own password and authenticator.

import type { FastifyInstance } from "fastify";
import { operatorDocument, setUpPath } from "#common/documents/operator-document.ts";
import { requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Operator } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Edge } from "../../context.ts";
import { requireOperator } from "../session.ts";
import { type AdminCall, adminRoute, listOf } from "./context.ts";
import { passwordTimeoutMs, sentPasswordChars } from "./limits.ts";

/** Routes of the operators who sign in by name. Acts that give access ask for the secret again, as making a key does. */
export function operatorRoutes(app: FastifyInstance, edge: Edge): void {
  const post = (url: string, handle: (call: AdminCall) => Promise<unknown>, asksSecret = true) =>
    adminRoute(app, edge, { method: "POST", url, asksSecret, handle });
  adminRoute(app, edge, { method: "GET", url: "/operators", handle: list });
  post("/operators", add);
  post("/operators/:name/enable", (call) => setState(call, false));
  post("/operators/:name/disable", (call) => setState(call, true), false);
  post("/operators/:name/remove", remove, false);
  post("/operators/:name/reset-password", resetPassword);
  post("/operators/:name/reset-totp", resetTotp);
}

/** Routes of the signed-in operator's own password and second factor. Other operators have neither. */
export function ownOperatorRoutes(app: FastifyInstance, edge: Edge): void {
  const own = "/own-operator";
  adminRoute(app, edge, { method: "GET", url: own, handle: showOwn });
  adminRoute(app, edge, { method: "GET", url: `${own}/totp`, handle: draftTotp });
  const post = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, {
      ...{ method: "POST", asksSecret: true, url: `${own}${url}` },
      ...{ timeoutMs: passwordTimeoutMs, handle },
    });
  post("/password", changePassword);
  post("/totp", changeTotp);
  post("/recovery-codes", newRecoveryCodes);
}

async function list(call: AdminCall) {
  const { operators } = await call.peers.auth.listOperators({}, call.options);
  return listOf(operators.map(operatorDocument));
}

async function add(call: AdminCall) {
  const name = requiredString(await call.body(), "name", { min: 1, max: 64 });
  const made = await call.audited(
    { action: "operator.add" },
    () => call.peers.auth.addOperator({ name }, call.options),
    ({ operator }) => ({ target: operator?.name }),
  );
  call.reply.code(201);
  return withLink(made);
}

async function setState(call: AdminCall, disabled: boolean) {
  const name = nameOf(call);
  const action = disabled ? "operator.disable" : "operator.enable";
  const { operator } = await call.audited({ action, target: name }, () =>
    call.peers.auth.setOperatorState({ name, disabled }, call.options),
  );
  return one(operator);
}

async function remove(call: AdminCall) {
  const name = nameOf(call);
  await call.audited({ action: "operator.remove", target: name }, () =>
    call.peers.auth.removeOperator({ name }, call.options),
  );
  return { object: "operator", name, deleted: true };
}

async function resetPassword(call: AdminCall) {
  const name = nameOf(call);
  return withLink(
    await call.audited({ action: "operator.reset_password", target: name }, () =>
      call.peers.auth.resetOperatorPassword({ name }, call.options),
    ),
  );
}

async function resetTotp(call: AdminCall) {
  const name = nameOf(call);
  return withLink(
    await call.audited({ action: "operator.reset_totp", target: name }, () =>
      call.peers.auth.resetOperatorTotp({ name, byLink: true }, call.options),
    ),
  );
}

async function showOwn(call: AdminCall) {
  const name = ownName(call);
  const { operators } = await call.peers.auth.listOperators({}, call.options);
  return one(operators.find((operator) => operator.name === name));
}

async function draftTotp(call: AdminCall) {
  const { uri } = await call.peers.auth.draftTotp({ name: ownName(call) }, call.options);
  return { object: "totp", uri };
}

/** It ends this session too: the operator signs in with the new password. */
async function changePassword(call: AdminCall) {
  const name = ownName(call);
  const password = requiredString(await call.body(), "password", sentPasswordChars);
  const { operator } = await call.audited(
    { action: "operator.change_password", target: name },
    () => call.peers.auth.resetOperatorPassword({ name, password }, call.options),
  );
  return one(operator);
}

async function changeTotp(call: AdminCall) {
  const name = ownName(call);
  const body = await call.body();
  const totpSecret = requiredString(body, "totpSecret", { min: 1, max: 64 });
  const code = requiredString(body, "code", { min: 1, max: 64 });
  const { recoveryCodes } = await call.audited(
    { action: "operator.change_totp", target: name },
    () => call.peers.auth.replaceOperatorTotp({ name, totpSecret, code }, call.options),
  );
  return { object: "recovery_codes", recoveryCodes };
}

async function newRecoveryCodes(call: AdminCall) {
  const name = ownName(call);
  const { recoveryCodes } = await call.audited(
    { action: "operator.new_recovery_codes", target: name },
    () => call.peers.auth.replaceRecoveryCodes({ name }, call.options),
  );
  return { object: "recovery_codes", recoveryCodes };
}

/** The operator of the path. The audit log takes printable names alone, and no operator has another. */
function nameOf(call: AdminCall): string {
  const name = call.param("name").toLowerCase();
  return /^[\x21-\x7e]{1,64}$/.test(name) ? name : refuse(ErrorReason.OBJECT_NOT_FOUND);
}

/** The operator of the session. Refuses with OBJECT_NOT_FOUND where the session is not one of a name. */
function ownName({ request }: AdminCall): string {
  const message =
    "You did not sign in by name, so there is no password or second factor of yours here.";
  return requireOperator(request).operatorName ?? refuse(ErrorReason.OBJECT_NOT_FOUND, { message });
}

function one(operator: Operator | undefined) {
  if (!operator) refuse(ErrorReason.OBJECT_NOT_FOUND);
  return operatorDocument(operator);
}

/** An operator with the link to set up what is missing. The link is shown this once. */
function withLink({
  operator,
  setUpToken,
}: {
  operator?: Operator | undefined;
  setUpToken: string;
}) {
  const shown = one(operator);
  return { ...shown, setUpPath: setUpPath(shown.name, setUpToken) };
}
