// The operator's routes for accounts: list, make, add funds, refund, take back, suspend, close.

import type { FastifyInstance } from "fastify";
import { accountChangeDetails, changeAccount } from "#common/agreements/account-change.ts";
import { driveClosing } from "#common/agreements/account-closing.ts";
import { accountDocument, listedAccountDocument } from "#common/documents/account-document.ts";
import { unitName } from "#common/documents/answer-values.ts";
import { optionalBoolean, optionalNumber, requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Edge } from "../../context.ts";
import {
  type AdminCall,
  adminRoute,
  findAccount,
  listOf,
  readOperationId,
  readUnit,
} from "./context.ts";
import { maxAmount } from "./limits.ts";

/** Routes of accounts and their funds. */
export function accountRoutes(app: FastifyInstance, edge: Edge): void {
  const get = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "GET", url, handle });
  const patch = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "PATCH", url, asksSecret: true, handle });
  const post = (url: string, handle: (call: AdminCall) => Promise<unknown>, asksSecret = false) =>
    adminRoute(app, edge, { method: "POST", url, asksSecret, handle });

  get("/accounts", async (call) => {
    const { auth } = call.peers;
    const asked = { ...call.page(), query: call.query("query") };
    const { accounts, nextPageToken } = await auth.listAccounts(asked, call.options);
    const listed = accounts.map(async (one) =>
      listedAccountDocument(one, await balanceOf(call, one.accountId)),
    );
    return listOf(await Promise.all(listed), nextPageToken);
  });
  get("/accounts/:accountId", async (call) => shown(call, await findAccount(call)));
  patch("/accounts/:accountId", change);
  post("/accounts", create, true);
  post("/accounts/:accountId/top-up", topUp, true);
  post("/accounts/:accountId/refund", refund, true);
  post("/accounts/:accountId/take-back", takeBack, true);
  post("/accounts/:accountId/close", close, true);
  for (const [name, suspended] of [
    ["suspend", true],
    ["resume", false],
  ] as const) {
    post(`/accounts/:accountId/${name}`, async (call) => {
      const accountId = call.param("accountId");
      const { account } = await call.audited({ action: `account.${name}`, accountId }, () =>
        call.peers.auth.setAccountState({ accountId, suspended }, call.options),
      );
      return shown(call, account);
    });
  }
}

async function change(call: AdminCall) {
  const accountId = call.param("accountId");
  const asked = await call.body();
  const account = await call.audited(
    { action: "account.update", accountId, details: accountChangeDetails(asked) },
    () => changeAccount(call.peers, accountId, asked, call.options),
  );
  return shown(call, account);
}

/** An account with its wallets and its monthly grant. */
async function shown(call: AdminCall, account: Account | undefined) {
  if (!account) throw new Error("auth answered no account and did not refuse");
  const { accountId } = account;
  const grant = call.peers.billing
    .getMonthlyGrant({ accountId }, call.options)
    .catch(() => undefined);
  return accountDocument(account, await balanceOf(call, accountId), (await grant)?.monthlyGrant);
}

/** Undefined where billing does not answer. */
function balanceOf({ peers, options }: AdminCall, accountId: string) {
  return peers.billing.getBalance({ accountId }, options).catch(() => undefined);
}

/** The amount to add to each wallet. */
function readFunds(body: JsonObject) {
  const rule = { min: 0, max: maxAmount, integer: true };
  const usdMicros = optionalNumber(body, "usdMicros", rule) ?? 0;
  const credits = optionalNumber(body, "credits", rule) ?? 0;
  return { usdMicros, credits };
}

/** Adds the asked amounts, once to each wallet for an operation id. True where all of it was added earlier. */
async function fund(
  call: AdminCall,
  accountId: string,
  funds: ReturnType<typeof readFunds>,
  operationId: string,
): Promise<boolean> {
  const parts = [
    [Unit.USD_MICROS, funds.usdMicros],
    [Unit.CREDITS, funds.credits],
  ] as const;
  let replayed = true;
  for (const [unit, sum] of parts) {
    if (sum === 0) continue;
    const grant = { accountId, unit, amount: BigInt(sum), operationId };
    const answer = await call.peers.billing.grant(grant, call.options);
    replayed = replayed && answer.replayed;
  }
  return replayed;
}

async function create(call: AdminCall) {
  const body = await call.body();
  const name = requiredString(body, "name", { min: 1, max: 200, notBlank: true });
  const operationId = readOperationId(body);
  const funds = readFunds(body);
  const made = await call.audited(
    { action: "account.create", details: { ...funds, operationId } },
    async () => {
      const answer = await call.peers.auth.createAccount({ name, operationId }, call.options);
      const accountId = answer.account?.accountId ?? "";
      // The grants' ids derive from the operation's id. So a repeat after a crash completes the operation and adds nothing twice.
      await fund(call, accountId, funds, `create:${operationId}`);
      return answer;
    },
    ({ account }) => ({ accountId: account?.accountId }),
  );
  call.reply.code(201);
  const { key, secret, replayed } = made;
  return {
    ...(await shown(call, made.account)),
    firstKey: { id: key?.keyId ?? null, secret: secret || null },
    replayed,
  };
}

async function topUp(call: AdminCall) {
  const body = await call.body();
  const operationId = readOperationId(body);
  const funds = readFunds(body);
  if (funds.usdMicros === 0 && funds.credits === 0) {
    const message = "Name 'usdMicros' or 'credits', above 0.";
    refuse(ErrorReason.INVALID_VALUE, { param: "usdMicros", message });
  }
  const account = await findAccount(call);
  if (account.closingTime)
    refuse(ErrorReason.STATE_CONFLICT, { message: "The account is closed." });
  const { accountId } = account;
  const details = { ...funds, operationId };
  const replayed = await call.audited({ action: "account.top_up", accountId, details }, () =>
    fund(call, accountId, funds, operationId),
  );
  return { ...(await shown(call, account)), replayed };
}

/** An amount of an entry, as a body names it. Without an amount it is all of the entry. */
function readAmountOf(call: AdminCall, body: JsonObject) {
  const unit = readUnit(body);
  const operationId = readOperationId(body);
  const rule = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const entry = optionalNumber(body, "entry", rule);
  if (entry === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "entry" });
  const amount = optionalNumber(body, "amount", rule);
  const accountId = call.param("accountId");
  return {
    ...{ accountId, unit, entry },
    planned: { accountId, target: `entry ${entry}` },
    details: { unit: unitName(unit), amount: amount ?? null, operationId },
    asked: {
      ...{ accountId, unit, operationId, entryNumber: BigInt(entry) },
      ...(amount === undefined ? {} : { amount: BigInt(amount) }),
    },
  };
}

async function takeBack(call: AdminCall) {
  const body = await call.body();
  const upTo = optionalBoolean(body, "upTo") ?? false;
  const { accountId, unit, entry, planned, details, asked } = readAmountOf(call, body);
  const done = await call.audited(
    { action: "account.take_back", ...planned, details: { ...details, upTo } },
    () => call.peers.billing.takeBack({ ...asked, upTo }, call.options),
  );
  return {
    object: "take_back",
    ...{ accountId, unit: unitName(unit), entry },
    takeBackEntry: done.entryNumber,
    amount: done.takenAmount,
    replayed: done.replayed,
  };
}

async function refund(call: AdminCall) {
  const { accountId, unit, entry, planned, details, asked } = readAmountOf(call, await call.body());
  const done = await call.audited({ action: "account.refund", ...planned, details }, () =>
    call.peers.billing.refund(asked, call.options),
  );
  return {
    object: "refund",
    ...{ accountId, unit: unitName(unit), entry },
    refundEntry: done.entryNumber,
    amount: done.refundedAmount,
    replayed: done.replayed,
  };
}

/** This call does the first round of closing an account. The gateways do the later rounds. */
async function close(call: AdminCall) {
  const accountId = call.param("accountId");
  if ((await call.body()).confirm !== accountId) {
    const message = "The parameter 'confirm' must be the id of the account.";
    refuse(ErrorReason.INVALID_VALUE, { param: "confirm", message });
  }
  const { account } = await call.audited({ action: "account.close", accountId }, () =>
    call.peers.auth.closeAccount({ accountId }, call.options),
  );
  const { keys } = await call.peers.auth.listKeys({ accountId }, call.options);
  // The next round repeats a step that fails here.
  await driveClosing(
    { account, keyIds: keys.map(({ keyId }) => keyId) },
    call.peers,
    call.clock,
  ).catch(() => {});
  call.reply.code(202);
  return shown(call, account);
}
