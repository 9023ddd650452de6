import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema, migrate } from "#kit/store/mongo/migrate.ts";
import { maxAlertsKept, maxConflicts } from "../base/limits.ts";
import { type Alert, noSettings, settingsOf, settingsText } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";

interface SettingDocument {
  /** The account. */
  _id: string;
  /** `settingsText`. */
  setting: string;
}

interface AlertDocument extends Omit<Alert, "alertId" | "forgetAt"> {
  /** The alert. */
  _id: string;
  forgetAt?: number;
  /** It has not ended. */
  waiting?: true;
}

const collections = { settings: "ledger_alert_setting", alerts: "ledger_alert" } as const;

const indexes: MongoSchema["indexes"] = {
  [collections.settings]: [],
  [collections.alerts]: [
    {
      name: "turns",
      key: { waiting: 1, accountId: 1, at: 1 },
      partial: { waiting: { $exists: true } },
    },
    { name: "over", key: { forgetAt: 1 }, partial: { forgetAt: { $exists: true } } },
    { name: "account", key: { accountId: 1 } },
  ],
};

/** What alerts keep in MongoDB. */
export const alertsMongoSchema: MongoSchema = {
  component: "ledger_alerts",
  indexes,
  steps: [indexStep(indexes)],
};

/** Alerts in MongoDB. */
export function createMongoAlerts(db: MongoDatabase): AlertStore {
  const settings = db.collection<SettingDocument>(collections.settings);
  const alerts = db.collection<AlertDocument>(collections.alerts);
  return {
    open: () => migrate(db, [alertsMongoSchema]),
    settings: (accountId) =>
      db.attempt(async () => {
        const doc = await settings.findOne({ _id: accountId });
        return doc ? settingsOf(doc.setting) : noSettings;
      }),
    change: (accountId, change) =>
      db.attempt(async () => {
        for (let round = 0; round < maxConflicts; round++) {
          const doc = await settings.findOne({ _id: accountId });
          const after = change(doc ? settingsOf(doc.setting) : noSettings);
          const setting = settingsText(after);
          if (doc) {
            const before = { _id: accountId, setting: doc.setting };
            const { matchedCount } = await settings.updateOne(before, { $set: { setting } });
            if (matchedCount === 1) return after;
          } else if (await inserted(() => settings.insertOne({ _id: accountId, setting }))) {
            return after;
          }
        }
        throw awayRefusal(new Error("an account's alerts do not come to rest"));
      }),
    add: (found) => db.attempt(() => addAll(alerts, found)),
    waiting: (turns) => db.attempt(() => waitingIn(alerts, turns)),
    end: (alertId) =>
      db.attempt(async () => {
        await alerts.updateOne({ _id: alertId }, { $unset: { waiting: "" } });
      }),
    forget: (now, limit) =>
      db.attempt(async () => {
        const over = await alerts
          .find({ forgetAt: { $lte: now } }, { projection: { _id: 1, waiting: 1 } })
          .sort({ forgetAt: 1 })
          .limit(limit)
          .toArray();
        const ids = over.filter(({ waiting }) => !waiting).map(({ _id }) => _id);
        if (ids.length > 0) await alerts.deleteMany({ _id: { $in: ids } });
      }),
    erase: (accountId) =>
      db.attempt(async () => {
        await settings.deleteOne({ _id: accountId });
        await alerts.deleteMany({ accountId });
      }),
  };
}

/** Answers how many were left out, for their accounts have too many. */
async function addAll(alerts: Collection<AlertDocument>, found: readonly Alert[]): Promise<number> {
  let leftOut = 0;
  for (const [accountId, own] of Map.groupBy(found, (one) => one.accountId)) {
    let kept = await alerts.countDocuments({ accountId }, { limit: maxAlertsKept });
    for (const alert of own) {
      if (kept >= maxAlertsKept) leftOut++;
      else if (await inserted(() => alerts.insertOne(documentOf(alert)))) kept++;
    }
  }
  return leftOut;
}

/** The oldest alerts of the next accounts that have some. */
async function waitingIn(
  alerts: Collection<AlertDocument>,
  { afterAccount, accounts, each }: Parameters<AlertStore["waiting"]>[0],
): Promise<Alert[]> {
  const found: Alert[] = [];
  for (let [i, account] = [0, afterAccount]; i < accounts; i++) {
    const next = await alerts.findOne(
      { waiting: true, accountId: { $gt: account } },
      { sort: { waiting: 1, accountId: 1 }, projection: { accountId: 1 } },
    );
    if (!next) break;
    account = next.accountId;
    const oldest = alerts
      .find({ waiting: true, accountId: account })
      .sort({ waiting: 1, accountId: 1, at: 1 })
      .limit(each);
    found.push(...(await oldest.toArray()).map(alertOf));
  }
  return found;
}

/** False where one of its id is there. */
async function inserted(insert: () => Promise<unknown>): Promise<boolean> {
  try {
    await insert();
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

function documentOf({ alertId, forgetAt, ...alert }: Alert): AlertDocument {
  return {
    _id: alertId,
    ...alert,
    waiting: true,
    ...(forgetAt === undefined ? {} : { forgetAt }),
  };
}

function alertOf({ _id, waiting: _, forgetAt, ...alert }: AlertDocument): Alert {
  return {
    alertId: _id,
    ...alert,
    forgetAt: forgetAt === undefined ? undefined : Number(forgetAt),
  };
}
