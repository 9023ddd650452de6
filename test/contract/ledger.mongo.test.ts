import { describe } from "vitest";
import { createMongoLedger } from "../../services/billing/store-mongo.ts";
import { findBackend } from "../support/backends.ts";
import { mongoTests } from "../support/mongo.ts";
import { ledgerStoreContract } from "./ledger.suite.ts";

const { url, note } = await findBackend("mongodb");

describe.skipIf(url === undefined)(`the ledger in MongoDB${note}`, () => {
  const mongo = mongoTests(url ?? "");
  ledgerStoreContract(async () => {
    const name = mongo.newName();
    const stores = [mongo.connect(name), mongo.connect(name)].map((db) => createMongoLedger(db));
    for (const store of stores) await store.open();
    return stores as never;
  });
});
