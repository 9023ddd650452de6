import { createMongoAuthStore } from "../../services/auth/store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { keyStoreContract } from "./keys.suite.ts";

await describeMongo("keys in MongoDB", (mongo) => {
  keyStoreContract(async () => {
    const name = mongo.newName();
    const stores = [
      createMongoAuthStore(mongo.connect(name)),
      createMongoAuthStore(mongo.connect(name)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });
});
