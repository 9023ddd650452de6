// Computes from journal entries and refused holds which alerts an account gets, and words their bodies. It reads and writes
// nothing. `alerts.ts` calls it and keeps what it finds.

import { createHash } from "node:crypto";
import type { LimitPeriod } from "../base/periods.ts";
import type { Entry, KeyLimit } from "../ledger/wallet.ts";

/** The kinds of alerts. */
export type AlertType = "balance.low" | "key.limit_reached";

/** A message about an account, written once. Times are in ms since the epoch. */
export interface Alert {
  /** Made of what it tells, so that any number of processes that find the same write one. */
  alertId: string;
  accountId: string;
  /** The key whose webhook receives it. "": the account's webhook. */
  keyId: string;
  type: AlertType;
  /** The JSON that is signed and sent. */
  body: string;
  at: number;
  /** When it may be forgotten: what it tells cannot be found again. Undefined: never, as an earlier release kept limits for ever. */
  forgetAt: number | undefined;
}

/** Told when the account's available USD micros fall below this. */
export interface LowBalance {
  usdMicros: bigint;
  /** When it was set, in ms since the epoch: what was so before is not told. */
  since: number;
}

/** An account's settings for its alerts. */
export interface AlertSettings {
  lowBalance?: LowBalance;
  /** The account's webhook. A key has its own in its settings. */
  webhookUrl?: string;
  /** By key id. */
  keys: Readonly<Record<string, LowBalance>>;
}

/** Nothing is set. */
export const noSettings: AlertSettings = { keys: {} };

const dayMs = 86_400_000;
/**
 * Milliseconds for which an alert is kept. That is longer than the limit's period, so that a period has one alert. Alerts of a limit
 * without a period and of a low balance are kept as long as those of a month.
 */
const keptMs: Readonly<Record<LimitPeriod, number>> = {
  day: 2 * dayMs,
  week: 9 * dayMs,
  month: 40 * dayMs,
  ever: 40 * dayMs,
};

/**
 * The alerts of entries that follow a balance, in their order. The available balance fell below each of these limits, the
 * account's or a key's. An alert's id has the entry's number, so each fall has one alert, although any process may count it.
 */
export function lowBalances(
  accountId: string,
  before: bigint,
  entries: readonly Entry[],
  settings: AlertSettings,
): Alert[] {
  const limits: [keyId: string, limit: LowBalance][] = Object.entries(settings.keys);
  if (settings.lowBalance) limits.unshift(["", settings.lowBalance]);
  const alerts: Alert[] = [];
  let balance = before;
  for (const { n, at, freeDelta, heldDelta } of entries) {
    const after = balance + freeDelta + heldDelta;
    for (const [keyId, { usdMicros, since }] of limits) {
      if (balance < usdMicros || after >= usdMicros || at < since) continue;
      alerts.push({
        ...{ alertId: alertIdOf([accountId, keyId, "balance.low", `${n}`]), accountId, keyId },
        type: "balance.low",
        body: bodyOf("balance.low", at, {
          accountId,
          keyId: keyId || null,
          availableUsdMicros: Number(after),
          lowBalanceUsdMicros: Number(usdMicros),
        }),
        at,
        forgetAt: at + keptMs.ever,
      });
    }
    balance = after;
  }
  return alerts;
}

const resetWords: Readonly<Record<LimitPeriod, string | null>> = {
  day: "daily",
  week: "weekly",
  month: "monthly",
  ever: null,
};

/**
 * The alert for a request of a key that was refused for its limit. `period` names the running period, which has one alert. A limit
 * without a period has one for each amount, and another after 40 days.
 */
export function limitReached(
  { accountId, keyId }: { accountId: string; keyId: string },
  limit: KeyLimit,
  period: string,
  at: number,
): Alert {
  const isForEver = limit.period === "ever";
  const once = isForEver ? `${limit.amount}` : period;
  return {
    alertId: alertIdOf([accountId, keyId, "key.limit_reached", limit.period, once]),
    accountId,
    keyId,
    type: "key.limit_reached",
    body: bodyOf("key.limit_reached", at, {
      accountId,
      keyId,
      limitUsdMicros: Number(limit.amount),
      limit_reset: resetWords[limit.period],
    }),
    at,
    forgetAt: at + keptMs[limit.period],
  };
}

function bodyOf(type: AlertType, at: number, data: Record<string, string | number | null>): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
}

function alertIdOf(parts: readonly string[]): string {
  return `evt_${createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 24)}`;
}

/** Settings as they are stored. */
export function settingsText({ lowBalance, webhookUrl, keys }: AlertSettings): string {
  const textOf = ({ usdMicros, since }: LowBalance) => ({ usdMicros: `${usdMicros}`, since });
  return JSON.stringify({
    ...(lowBalance ? { lowBalance: textOf(lowBalance) } : {}),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
    keys: Object.fromEntries(Object.entries(keys).map(([id, limit]) => [id, textOf(limit)])),
  });
}

interface StoredLowBalance {
  usdMicros: string;
  since: number;
}

/** The settings of a {@link settingsText}. */
export function settingsOf(text: string): AlertSettings {
  const stored: {
    lowBalance?: StoredLowBalance;
    webhookUrl?: string;
    keys: Record<string, StoredLowBalance>;
  } = JSON.parse(text);
  const limitOf = ({ usdMicros, since }: StoredLowBalance): LowBalance => ({
    usdMicros: BigInt(usdMicros),
    since,
  });
  const { lowBalance, webhookUrl, keys } = stored;
  return {
    ...(lowBalance ? { lowBalance: limitOf(lowBalance) } : {}),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
    keys: Object.fromEntries(Object.entries(keys).map(([id, limit]) => [id, limitOf(limit)])),
  };
}
