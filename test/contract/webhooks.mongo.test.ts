import { expect, test } from "vitest";
import {
  createMongoWebhookStore,
  webhooksMongoSchema,
} from "../../services/media/webhooks/store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { webhookStoreContract } from "./webhooks.suite.ts";

await describeMongo(
  "webhooks in MongoDB",
  (mongo) => {
    webhookStoreContract(async () => {
      const name = mongo.newName();
      const [one, two] = [mongo.connect(name), mongo.connect(name)];
      const stores = [createMongoWebhookStore(one), createMongoWebhookStore(two)] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    // Last: it looks at what the tests above have sent.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(webhooksMongoSchema);
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
