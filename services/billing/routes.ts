// Answers the methods of BillingService that move money, list it or audit it. The methods for usage are in
// `usage/usage-routes.ts`, those for alerts in `alerts/alerts.ts`.

import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, isRefusal, refuse } from "#kit/base/errors.ts";
import { type RpcService, rpcService } from "#kit/rpc/service.ts";
import {
  type AuditLedgerRequest,
  type AuditLedgerResponse,
  AuditLedgerResponseSchema,
  BillingService,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Alerts } from "./alerts/alerts.ts";
import { createGrantRoutes, type MonthlyGrantsContext } from "./grants/monthly.ts";
import { applyEach, applyOne, type LedgerContext } from "./ledger/apply.ts";
import { type AuditRead, auditWallet } from "./ledger/audit.ts";
import { readAccountEntries } from "./ledger/entries-page.ts";
import {
  closedMessage,
  entryMessage,
  holdMessage,
  holdStateMessage,
  openedMessage,
  outcomeMessage,
  unitMessage,
  walletMessage,
} from "./ledger/messages.ts";
import type { Operation, Outcome } from "./ledger/operations.ts";
import * as requests from "./ledger/requests.ts";
import { type Entry, operationIds, type WalletRef } from "./ledger/wallet.ts";
import { beginUsageAudit } from "./usage/audit-usage.ts";
import { readKeyUsage } from "./usage/key-usage.ts";
import type { Counting } from "./usage/usage-counting.ts";
import { createUsageRoutes } from "./usage/usage-routes.ts";
import type { UsageStore } from "./usage/usage-store.ts";

/** The parts that the methods need. */
export interface BillingRoutesContext extends MonthlyGrantsContext {
  usage: UsageStore;
  counting: Counting;
  alerts: Alerts;
}

/** The methods of BillingService. The proto file states their promises. */
export function createBillingRoutes(ctx: BillingRoutesContext): RpcService {
  return rpcService(BillingService, {
    ...createUsageRoutes(ctx),
    ...ctx.alerts.methods,
    ...operationRoutes(ctx),
    ...readRoutes(ctx),
    ...operatorRoutes(ctx),
    ...createGrantRoutes(ctx),
    async eraseAlerts(request, call) {
      await ctx.grants.erase(requests.readAccountId(request.accountId));
      return ctx.alerts.methods.eraseAlerts(request, call);
    },
  });
}

type Methods = ServiceImpl<typeof BillingService>;

/** The methods for owners of holds. */
function operationRoutes(
  ctx: BillingRoutesContext,
): Pick<Methods, "reserve" | "settle" | "release" | "apply"> {
  return {
    async reserve(request) {
      return openedMessage(await one(ctx, requests.readReserve(request), "reserved"));
    },
    async settle(request) {
      return closedMessage(await one(ctx, requests.readSettle(request), "closed"));
    },
    async release(request) {
      return closedMessage(await one(ctx, requests.readRelease(request), "closed"));
    },
    async apply({ operations }) {
      const outcomes = await applyEach(ctx, operations);
      return {
        outcomes: outcomes.map((outcome, i) =>
          outcomeMessage(operations[i]?.operation.case, outcome),
        ),
      };
    },
  };
}

/** The methods that change nothing. */
function readRoutes(
  ctx: BillingRoutesContext,
): Pick<Methods, "getBalance" | "getKeyUsage" | "auditLedger" | "listHolds" | "listEntries"> {
  const { store, clock } = ctx;
  return {
    async getBalance(request) {
      const accountId = requests.readAccountId(request.accountId);
      const [usdMicros, credits] = await Promise.all([
        store.wallet({ accountId, unit: "usd_micros" }),
        store.wallet({ accountId, unit: "credits" }),
      ]);
      const now = clock.now();
      return { usdMicros: walletMessage(usdMicros, now), credits: walletMessage(credits, now) };
    },
    async getKeyUsage(request) {
      const accountId = requests.readAccountId(request.accountId);
      const [keys, lowBalances] = await Promise.all([
        readKeyUsage(ctx, accountId, requests.readKeyIds(request.keyIds)),
        ctx.alerts.lowBalances(accountId),
      ]);
      return {
        keys: keys.map(({ keyId, monthSpent, held, totals = {} }) => {
          const lowBalanceUsdMicros = lowBalances.get(keyId);
          const low = lowBalanceUsdMicros === undefined ? {} : { lowBalanceUsdMicros };
          return { keyId, monthSpent, held, ...totals, ...low };
        }),
      };
    },
    auditLedger: (request, call) => audit(ctx, request, call.signal),
    async listHolds(request) {
      const { items, next } = await store.holds({
        accountId: request.accountId ? requests.readAccountId(request.accountId) : undefined,
        limit: requests.readPageSize(request.pageSize),
        after: request.pageToken || undefined,
      });
      return { holds: items.map(holdMessage), nextPageToken: next ?? "" };
    },
    async listEntries(request) {
      const { items, next } = await readAccountEntries(store, {
        accountId: requests.readAccountId(request.accountId),
        holdId: request.holdId ? requests.readHoldId(request.holdId) : undefined,
        limit: requests.readPageSize(request.pageSize),
        after: request.pageToken || undefined,
      });
      const entries = items.map(({ wallet, entry }) => entryMessage(wallet, entry));
      return { entries, nextPageToken: next ?? "" };
    },
  };
}

/** The operator's methods for wallets and holds. */
function operatorRoutes(
  ctx: BillingRoutesContext,
): Pick<Methods, "grant" | "refund" | "takeBack" | "endHold"> {
  const { clock, events } = ctx;
  return {
    async grant(request) {
      const { wallet, replayed } = await one(ctx, requests.readGrant(request), "granted");
      return { wallet: walletMessage(wallet, clock.now()), replayed };
    },
    async refund(request) {
      const asked = requests.readRefund(request);
      const charge = await entryOf(ctx, asked.wallet, asked.entry);
      if (!charge) refuse(ErrorReason.ENTRY_NOT_FOUND);
      const { wallet, ...rest } = asked;
      const operation = { kind: "refund", holdId: charge.holdId, ...rest } as const;
      const done = await one(ctx, { wallet, operation }, "refunded");
      return {
        wallet: walletMessage(done.wallet, clock.now()),
        refundedAmount: done.amount,
        entryNumber: BigInt(done.entry),
        replayed: done.replayed,
      };
    },
    async takeBack(request) {
      const { wallet, ...asked } = requests.readTakeBack(request);
      const grant = await entryOf(ctx, wallet, asked.entry);
      if (grant?.kind !== "grant" || grant.amount < 0n) refuse(ErrorReason.ENTRY_NOT_FOUND);
      const grantId = grant.operationId.slice(operationIds.grant("").length);
      const operation = { kind: "takeBack", grantId, ...asked } as const;
      const done = await one(ctx, { wallet, operation }, "takenBack").catch(refuseTakeBack);
      return {
        wallet: walletMessage(done.wallet, clock.now()),
        takenAmount: done.amount,
        entryNumber: BigInt(done.entry),
        replayed: done.replayed,
      };
    },
    async endHold(request) {
      const addressed = requests.readEndHold(request);
      const { operation, wallet } = addressed;
      const { state, charged, replayed } = await one(ctx, addressed, "closed");
      const asked =
        operation.kind === "settle"
          ? state === "settled" && charged === operation.amount
          : state === "released";
      if (!asked) {
        const metadata = { state, charged: `${charged}` };
        const message = `The hold was ${state} before, at ${charged}.`;
        refuse(ErrorReason.OPERATION_CONFLICT, { metadata, message });
      }
      if (!replayed) events.holdEnded(wallet, operation.holdId, state, charged);
      return { state: holdStateMessage(state), chargedAmount: charged };
    },
  };
}

/** Applies one operation. Its refusal is the call's. `kind` is the expected kind of outcome. */
async function one<K extends Exclude<Outcome["kind"], "refused">>(
  ctx: BillingRoutesContext,
  addressed: requests.Addressed<Operation>,
  kind: K,
): Promise<Extract<Outcome, { kind: K }>> {
  const outcome = await applyOne(ctx, addressed);
  if (outcome.kind !== kind) throw new Error(`${addressed.operation.kind}: ${outcome.kind}`);
  return outcome as Extract<Outcome, { kind: K }>;
}

/** The registry's text speaks of a request that a caller cannot pay for. */
function refuseTakeBack(error: unknown): never {
  const isShort =
    isRefusal(error, ErrorReason.INSUFFICIENT_BALANCE) ||
    isRefusal(error, ErrorReason.INSUFFICIENT_CREDITS);
  if (!isShort) throw error;
  const { reason, metadata } = error;
  const message = `Only ${metadata.spendable} of the balance is free. The rest is held or spent.`;
  refuse(reason, { metadata, message });
}

/** The entry of this number. */
async function entryOf(
  { store }: Pick<LedgerContext, "store">,
  wallet: WalletRef,
  number: number,
): Promise<Entry | undefined> {
  const [found] = await store.entries(wallet, { below: number + 1, limit: 1 });
  return found?.n === number ? found : undefined;
}

async function* audit(
  { store, events, usage, counting, clock }: BillingRoutesContext,
  { accountId: account, totals: withTotals }: AuditLedgerRequest,
  signal: AbortSignal,
): AsyncIterable<AuditLedgerResponse> {
  const accountId = account ? requests.readAccountId(account) : undefined;
  let wallets = 0n;
  let differenceCount = 0n;
  const read: AuditRead = { entries: 0 };
  for await (const found of store.snapshots(accountId)) {
    signal.throwIfAborted();
    wallets++;
    if (found.wallet) await counting.catchUpWallet(found.ref);
    const ofUsage = await beginUsageAudit(found, { usage, store });
    const { snapshot } = ofUsage;
    const differences = inTurn(auditWallet(snapshot, read), ofUsage.differences());
    for await (const difference of differences) {
      signal.throwIfAborted();
      differenceCount++;
      events.auditDifference(snapshot.ref, difference);
      yield create(AuditLedgerResponseSchema, {
        finding: {
          case: "difference",
          value: {
            accountId: snapshot.ref.accountId,
            unit: unitMessage(snapshot.ref.unit),
            field: difference.field,
            recorded: difference.recorded,
            computed: difference.computed,
            entryNumber: BigInt(difference.entryNumber),
          },
        },
      });
    }
    if (!withTotals || !read.computed) continue;
    const value = {
      accountId: snapshot.ref.accountId,
      wallet: walletMessage(read.computed, clock.now()),
      keys: ofUsage.keys(),
    };
    yield create(AuditLedgerResponseSchema, { finding: { case: "totals", value } });
  }
  const summary = { wallets, entries: BigInt(read.entries), differences: differenceCount };
  yield create(AuditLedgerResponseSchema, { finding: { case: "summary", value: summary } });
}

async function* inTurn<T>(...parts: readonly AsyncIterable<T>[]): AsyncIterable<T> {
  for (const part of parts) yield* part;
}
