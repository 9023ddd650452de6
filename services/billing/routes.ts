import { create } from "@bufbuild/protobuf";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { type RpcService, rpcService } from "#kit/rpc/service.ts";
import {
  type AuditLedgerResponse,
  AuditLedgerResponseSchema,
  BillingService,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { applyEach, applyOne, type LedgerContext } from "./apply.ts";
import { auditWallet } from "./audit.ts";
import { readAccountEntries } from "./entries-page.ts";
import {
  entryMessage,
  holdMessage,
  holdStateMessage,
  outcomeMessage,
  reserved,
  unitMessage,
  walletMessage,
} from "./messages.ts";
import type { Operation, Outcome } from "./operations.ts";
import * as requests from "./requests.ts";

/** The methods of BillingService; their promises stand in its proto file. */
export function createBillingRoutes(ctx: LedgerContext): RpcService {
  const { store, clock, events } = ctx;
  return rpcService(BillingService, {
    async reserve(request) {
      return reserved(await one(requests.readReserve(request), "reserved"));
    },
    async settle(request) {
      return closing(await one(requests.readSettle(request), "closed"));
    },
    async release(request) {
      return closing(await one(requests.readRelease(request), "closed"));
    },
    async apply({ operations }) {
      const outcomes = await applyEach(ctx, operations);
      return {
        outcomes: outcomes.map((outcome, i) =>
          outcomeMessage(operations[i]?.operation.case, outcome),
        ),
      };
    },
    async getBalance(request) {
      const accountId = requests.readAccountId(request.accountId);
      const [usdMicros, credits] = await Promise.all([
        store.wallet({ accountId, unit: "usd_micros" }),
        store.wallet({ accountId, unit: "credits" }),
      ]);
      const now = clock.now();
      return { usdMicros: walletMessage(usdMicros, now), credits: walletMessage(credits, now) };
    },
    async grant(request) {
      const { wallet, replayed } = await one(requests.readGrant(request), "granted");
      return { wallet: walletMessage(wallet, clock.now()), replayed };
    },
    auditLedger: (request, call) => audit(ctx, request.accountId, call.signal),
    async listHolds(request) {
      const { items, next } = await store.holds({
        accountId: request.accountId ? requests.readAccountId(request.accountId) : undefined,
        limit: requests.readPageSize(request.pageSize),
        after: request.pageToken || undefined,
      });
      return { holds: items.map(holdMessage), nextPageToken: next ?? "" };
    },
    async endHold(request) {
      const addressed = requests.readEndHold(request);
      const { operation, wallet } = addressed;
      const { state, charged, replayed } = await one(addressed, "closed");
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
  });

  /** Applies one operation; its refusal is the call's. `kind` is what the operation comes to. */
  async function one<K extends Exclude<Outcome["kind"], "refused">>(
    addressed: requests.Addressed<Operation>,
    kind: K,
  ): Promise<Extract<Outcome, { kind: K }>> {
    const outcome = await applyOne(ctx, addressed);
    if (outcome.kind !== kind) throw new Error(`${addressed.operation.kind}: ${outcome.kind}`);
    return outcome as Extract<Outcome, { kind: K }>;
  }
}

function closing({ state, charged, replayed }: Extract<Outcome, { kind: "closed" }>) {
  return { state: holdStateMessage(state), chargedAmount: charged, replayed };
}

async function* audit(
  { store, events }: LedgerContext,
  account: string,
  signal: AbortSignal,
): AsyncIterable<AuditLedgerResponse> {
  const accountId = account ? requests.readAccountId(account) : undefined;
  let wallets = 0n;
  let differences = 0n;
  const count = { entries: 0 };
  for await (const snapshot of store.snapshots(accountId)) {
    signal.throwIfAborted();
    wallets++;
    for await (const difference of auditWallet(snapshot, count)) {
      signal.throwIfAborted();
      differences++;
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
  }
  const summary = { wallets, entries: BigInt(count.entries), differences };
  yield create(AuditLedgerResponseSchema, { finding: { case: "summary", value: summary } });
}
