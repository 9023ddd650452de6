import { createMongoLedger } from "../../services/billing/store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { ledgerStoreContract } from "./ledger.suite.ts";

await describeMongo("the ledger in MongoDB", (mongo) => {
  ledgerStoreContract(async () => {
    const name = mongo.newName();
    const stores = [
      createMongoLedger(mongo.connect(name)),
      createMongoLedger(mongo.connect(name)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });
});
