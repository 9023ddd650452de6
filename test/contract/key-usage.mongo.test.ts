import { describeMongo } from "../support/mongo.ts";
import { keyUsageContract } from "./key-usage.suite.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    keyUsageContract(async () => {
      const name = mongo.newName();
      return () => ({ kind: "mongodb", mongo: mongo.connect(name) });
    });
  },
  { inTurn: true },
);
