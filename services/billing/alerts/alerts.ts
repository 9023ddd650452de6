// Finds falls of a balance and limits that are reached, writes their alerts down, and answers the methods of alerts. Counting of
// usage and the methods for holds call it. It sends nothing: `common/agreements/alert-delivery.ts` takes waiting alerts to media.

import type { ServiceImpl } from "@connectrpc/connect";
import { optionalNumber } from "#common/words/body.ts";
import { optionalOutsideUrl } from "#common/words/outside-url.ts";
import { maxKeysPerAccount, maxWebhookUrlLength } from "#common/words/request-bounds.ts";
import { createBoundedMap } from "#kit/base/bounded-map.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { parseSettings } from "#kit/base/settings-body.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { BillingEvents } from "../base/events.ts";
import {
  alertAccountsAtOnce,
  alertsForgottenAtOnce,
  alertsOfAccountAtOnce,
  forgetAlertsMs,
  maxLowBalance,
  maxToldAlerts,
} from "../base/limits.ts";
import { periodsAt } from "../base/periods.ts";
import type { Operation, Outcome } from "../ledger/operations.ts";
import { broken, readAccountId, readKeyIds } from "../ledger/requests.ts";
import type { Entry, WalletRef } from "../ledger/wallet.ts";
import { type Alert, type AlertSettings, limitReached, lowBalances } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";

/** The parts that alerts need. */
interface AlertsContext {
  store: AlertStore;
  clock: Clock;
  events: BillingEvents;
}

/** The methods of BillingService that are about alerts. */
type AlertMethods = Pick<
  ServiceImpl<typeof BillingService>,
  | "getAlerts"
  | "updateAlerts"
  | "setKeyLowBalance"
  | "listWaitingAlerts"
  | "endAlert"
  | "eraseAlerts"
>;

/** Finds the alerts that accounts asked for, and keeps each until it is handed over for delivery. */
export interface Alerts {
  methods: AlertMethods;
  /**
   * Entries of a wallet are about to be counted, in their order, after which no process looks at them again. A fall below a limit
   * is written down first, so none is lost; where the counting is repeated, the same alert is found again.
   */
  beforeCount(wallet: WalletRef, balance: bigint, entries: readonly Entry[]): Promise<void>;
  /**
   * Writes the alert of each key whose limit refused an operation, before its caller gets the answer. Once a period; after that it
   * costs nothing.
   */
  afterRefusal(
    wallet: WalletRef,
    operations: readonly Operation[],
    outcomes: readonly Outcome[],
    now: number,
  ): Promise<void>;
  /** The balance below which a key's webhook gets an alert, by key. */
  lowBalances(accountId: string): Promise<ReadonlyMap<string, bigint>>;
  /** Forgets what is over, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes them. */
export function createAlerts({ store, clock, events }: AlertsContext): Alerts {
  const told = createBoundedMap<true>(maxToldAlerts);
  const keep = async (alerts: readonly Alert[]) => {
    const leftOut = await store.add(alerts);
    if (leftOut > 0) events.alertsLeftOut(alerts[0]?.accountId ?? "", leftOut);
  };
  const reached = async (alert: Alert) => {
    if (told.get(alert.alertId)) return;
    try {
      await keep([alert]);
      told.set(alert.alertId, true);
    } catch (error) {
      // The refusal stands; the key's next one is written down.
      events.alertFailed(alert.accountId, error);
    }
  };
  return {
    methods: createMethods(store, clock),
    async beforeCount(wallet, balance, entries) {
      const falls = entries.some(({ freeDelta, heldDelta }) => freeDelta + heldDelta < 0n);
      if (wallet.unit !== "usd_micros" || !falls) return;
      const settings = await store.settings(wallet.accountId);
      const found = lowBalances(wallet.accountId, balance, entries, settings);
      if (found.length > 0) await keep(found);
    },
    async afterRefusal(wallet, operations, outcomes, now) {
      for (const [i, outcome] of outcomes.entries()) {
        const operation = isKeyLimitReached(outcome) ? operations[i] : undefined;
        if (operation?.kind !== "reserve" || !operation.keyLimit) continue;
        const { keyId, keyLimit } = operation;
        const period = keyLimit.period === "ever" ? "" : periodsAt(now)[keyLimit.period];
        await reached(limitReached({ ...wallet, keyId }, keyLimit, period, now));
      }
    },
    async lowBalances(accountId) {
      const { keys } = await store.settings(accountId);
      return new Map(Object.entries(keys).map(([keyId, { usdMicros }]) => [keyId, usdMicros]));
    },
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(forgetAlertsMs, signal).catch(() => undefined);
        if (signal.aborted) return;
        await store
          .forget(clock.now(), alertsForgottenAtOnce)
          .catch((error) => events.alertFailed("", error));
      }
    },
  };
}

/** Did the limit of a key refuse the operation? */
function isKeyLimitReached(outcome: Outcome): boolean {
  return outcome.kind === "refused" && outcome.reason === ErrorReason.KEY_LIMIT_EXCEEDED;
}

function createMethods(store: AlertStore, clock: Clock): AlertMethods {
  // The last account whose alerts were handed over: the next ones come next.
  let afterAccount = "";
  const nextWaiting = async () => {
    const query = { accounts: alertAccountsAtOnce, each: alertsOfAccountAtOnce };
    const found = await store.waiting({ ...query, afterAccount });
    return found.length === 0 && afterAccount !== ""
      ? store.waiting({ ...query, afterAccount: "" })
      : found;
  };
  return {
    async getAlerts(request) {
      return answer(await store.settings(readAccountId(request.accountId)));
    },
    async updateAlerts(request) {
      const accountId = readAccountId(request.accountId);
      const asked = readChange(parseSettings(request.body));
      const since = clock.now();
      const after = await store.change(accountId, (before) => {
        const { lowBalance = before.lowBalance?.usdMicros, webhookUrl = before.webhookUrl } = asked;
        return {
          ...(lowBalance == null
            ? {}
            : { lowBalance: limitSince(before.lowBalance, lowBalance, since) }),
          ...(webhookUrl == null ? {} : { webhookUrl }),
          keys: before.keys,
        };
      });
      return { alerts: answer(after) };
    },
    async setKeyLowBalance(request) {
      const accountId = readAccountId(request.accountId);
      const [keyId = ""] = readKeyIds([request.keyId]);
      const { usdMicros } = request;
      const isSound = usdMicros === undefined || (usdMicros >= 0n && usdMicros <= maxLowBalance);
      if (!isSound) broken("usd_micros");
      const since = clock.now();
      await store.change(accountId, (before) => {
        const { [keyId]: known, ...others } = before.keys;
        if (usdMicros === undefined) return { ...before, keys: others };
        if (!known && Object.keys(others).length >= maxKeysPerAccount) broken("key_id");
        return { ...before, keys: { ...others, [keyId]: limitSince(known, usdMicros, since) } };
      });
      return {};
    },
    async listWaitingAlerts() {
      const found = await nextWaiting();
      afterAccount = found.at(-1)?.accountId ?? "";
      const alerts = await Promise.all(
        found.map(async ({ alertId, accountId, keyId, type, body }) => {
          const { webhookUrl = "" } = await store.settings(accountId);
          // A key's limit on the balance is the key's alone.
          const accountWebhookUrl = keyId !== "" && type === "balance.low" ? "" : webhookUrl;
          return { alertId, accountId, keyId, type, body, accountWebhookUrl };
        }),
      );
      return { alerts };
    },
    async endAlert({ alertId }) {
      await store.end(alertId);
      return {};
    },
    async eraseAlerts(request) {
      await store.erase(readAccountId(request.accountId));
      return {};
    },
  };
}

/** One that stays the same goes on from when it was set. */
function limitSince(
  before: AlertSettings["lowBalance"],
  usdMicros: bigint,
  since: number,
): NonNullable<AlertSettings["lowBalance"]> {
  return before?.usdMicros === usdMicros ? before : { usdMicros, since };
}

function answer({ lowBalance, webhookUrl = "" }: AlertSettings) {
  return {
    webhookUrl,
    ...(lowBalance ? { lowBalanceUsdMicros: lowBalance.usdMicros } : {}),
  };
}

const known = ["lowBalanceUsdMicros", "webhookUrl"];

/** A change; what is undefined stays, what is null goes. */
function readChange(body: JsonObject): {
  lowBalance: bigint | null | undefined;
  webhookUrl: string | null | undefined;
} {
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    refuse(ErrorReason.UNSUPPORTED_PARAMETER, {
      param: [...unknown].slice(0, 200).join(""),
      message: `There is no such property here. There are: ${known.join(", ")}.`,
    });
  }
  const rule = { min: 0, max: Number(maxLowBalance), integer: true };
  const lowBalance =
    body.lowBalanceUsdMicros === null ? null : optionalNumber(body, "lowBalanceUsdMicros", rule);
  return {
    lowBalance: typeof lowBalance === "number" ? BigInt(lowBalance) : lowBalance,
    webhookUrl:
      body.webhookUrl === null ? null : optionalOutsideUrl(body, "webhookUrl", maxWebhookUrlLength),
  };
}
