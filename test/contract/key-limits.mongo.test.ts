import type { Document } from "mongodb";
import { ledgerCollections } from "../../services/billing/ledger/store-mongo-schema.ts";
import { describeMongo } from "../support/mongo.ts";
import { keyLimitContract } from "./key-limits.suite.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    keyLimitContract(async () => {
      const name = mongo.newName();
      const wallets = () => mongo.raw(name).collection<Document>(ledgerCollections.wallets);
      return {
        database: () => ({ kind: "mongodb", mongo: mongo.connect(name) }),
        async makeOld() {
          for (const { _id, keys } of await wallets().find().toArray()) {
            const fields = Object.keys(keys).flatMap((key) =>
              ["day", "week", "ever"].map((of) => [`keys.${key}.${of}`, ""]),
            );
            await wallets().updateOne(
              { _id },
              { $unset: Object.fromEntries(fields), $inc: { v: 1 } },
            );
          }
        },
        async tamper(counter) {
          const field = counter === "ever" ? "keys.key_1.ever" : `keys.key_1.${counter}.spent`;
          await wallets().updateOne({}, { $set: { [field]: 4n } });
        },
      };
    });
  },
  { inTurn: true },
);
