// Gives each account its monthly grant, once a month, and answers the methods that set a grant. The ledger books it.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { monthOf } from "#common/words/money.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { grantLookMs, grantsAtOnce, maxGrantAmount } from "../base/limits.ts";
import { applyOne, type LedgerContext } from "../ledger/apply.ts";
import { broken, readAccountId } from "../ledger/requests.ts";
import { units } from "../ledger/wallet.ts";
import type { GrantStore } from "./grant-store.ts";
import { type MonthlyGrant, nextMonthAt } from "./monthly-grant.ts";

/** The parts that monthly grants need. */
export interface MonthlyGrantsContext extends LedgerContext {
  grants: GrantStore;
}

/** The methods of BillingService that are about monthly grants. */
type GrantMethods = Pick<ServiceImpl<typeof BillingService>, "setMonthlyGrant" | "getMonthlyGrant">;

/** Makes the methods. */
export function createGrantRoutes({ grants, clock }: MonthlyGrantsContext): GrantMethods {
  return {
    async setMonthlyGrant(request) {
      const accountId = readAccountId(request.accountId);
      const { usdMicros, credits } = request;
      if (!isSound(usdMicros)) broken("usd_micros");
      if (!isSound(credits)) broken("credits");
      const asked = {
        ...(usdMicros === undefined ? {} : { usdMicros }),
        ...(credits === undefined ? {} : { credits }),
      };
      return answer(await grants.change(accountId, asked, clock.now()));
    },
    async getMonthlyGrant(request) {
      return answer(await grants.find(readAccountId(request.accountId)));
    },
  };
}

/** Gives what is due, again and again, until `signal` aborts. Never rejects. */
export async function runMonthlyGrants(
  context: MonthlyGrantsContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await giveDue(context, signal);
    await context.clock.sleep(grantLookMs, signal).catch(() => undefined);
  }
}

/**
 * Gives each grant that is due, once. Any number of processes may do it at the same time, and any of them may end in between. An
 * account's grant of a month is one operation of the ledger, so a repeat adds nothing. One that fails is left for the next time.
 */
export async function giveDue(context: MonthlyGrantsContext, signal: AbortSignal): Promise<void> {
  const { grants, clock, events } = context;
  let after: MonthlyGrant | undefined;
  try {
    do {
      const due = await grants.due({ now: clock.now(), after, limit: grantsAtOnce });
      await Promise.all(due.map((grant) => give(context, grant)));
      after = due.length === grantsAtOnce ? due.at(-1) : undefined;
    } while (after && !signal.aborted);
  } catch (error) {
    events.monthlyGrantFailed("", error);
  }
}

/** Gives the grant of the present month. One of a month that is over is not given any more. */
async function give(context: MonthlyGrantsContext, grant: MonthlyGrant): Promise<void> {
  const { grants, clock, events } = context;
  const { accountId } = grant;
  const now = clock.now();
  // No grant of an operator has a slash in its id, so none is taken for this one.
  const grantId = `monthly/${monthOf(now)}`;
  const amounts = { usd_micros: grant.usdMicros, credits: grant.credits };
  try {
    for (const unit of units) {
      const amount = amounts[unit];
      if (amount === 0n) continue;
      const operation = { kind: "grant", grantId, amount } as const;
      await applyOne(context, { wallet: { accountId, unit }, operation }).catch(otherAmount);
    }
    await grants.moveOn(accountId, nextMonthAt(now));
  } catch (error) {
    events.monthlyGrantFailed(accountId, error);
  }
}

/** The month's grant was given before its amount was changed. */
function otherAmount(error: unknown): void {
  if (!isRefusal(error, ErrorReason.OPERATION_MISMATCH)) throw error;
}

function isSound(amount: bigint | undefined): boolean {
  return amount === undefined || (amount >= 0n && amount <= maxGrantAmount);
}

function answer(grant: MonthlyGrant | undefined) {
  if (!grant) return {};
  const { usdMicros, credits, dueAt } = grant;
  return { monthlyGrant: { usdMicros, credits, nextTime: timestampFromMs(dueAt) } };
}
