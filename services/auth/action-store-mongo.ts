import type { Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema, migrate } from "#kit/store/mongo/migrate.ts";
import type { ActionStore, OperatorAction } from "./action.ts";

/** The collection of the audit log. */
const collection = "audit_action";

/** A line of the log. */
interface ActionDocument extends Omit<OperatorAction, "actionId"> {
  _id: string;
}

const indexes: MongoSchema["indexes"] = {
  [collection]: [
    { name: "time", key: { beganAtMs: 1, _id: 1 } },
    { name: "of_account", key: { accountId: 1, beganAtMs: 1, _id: 1 } },
  ],
};

/** What the audit log keeps in MongoDB. */
export const auditMongoSchema: MongoSchema = {
  component: "audit",
  indexes,
  steps: [indexStep(indexes)],
};

/** The audit log in MongoDB: a line is a document. */
export function createMongoActionStore(db: MongoDatabase): ActionStore {
  const actions = db.collection<ActionDocument>(collection);
  return {
    open: () => migrate(db, [auditMongoSchema]),
    begin: ({ actionId, ...action }) =>
      db.attempt(async () => {
        await actions.insertOne({ _id: actionId, ...action }).catch((error) => {
          if (!isDuplicate(error)) throw error;
        });
      }),
    end: ({ actionId, outcome, reason, accountId, target, endedAtMs }) =>
      db.attempt(async () => {
        await actions.updateOne(
          { _id: actionId, outcome: { $exists: false } },
          {
            $set: {
              ...{ outcome, endedAtMs },
              ...(reason === "" ? {} : { reason }),
              ...(accountId === "" ? {} : { accountId }),
              ...(target === "" ? {} : { target }),
            },
          },
        );
      }),
    list: ({ accountId, after, limit }) =>
      db.attempt(async () => {
        const filter = {
          ...(accountId === "" ? {} : { accountId }),
          beganAtMs: after ? { $lte: after.beganAtMs } : { $gte: 0 },
          ...(after
            ? {
                $or: [{ beganAtMs: { $lt: after.beganAtMs } }, { _id: { $lt: after.actionId } }],
              }
            : {}),
        } as Filter<ActionDocument>;
        const sort = { beganAtMs: -1, _id: -1 } as const;
        const docs = await actions.find(filter).sort(sort).limit(limit).toArray();
        return docs.map(({ _id, ...action }) => ({ actionId: _id, ...action }));
      }),
  };
}
