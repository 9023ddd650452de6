import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import { firstSecrets } from "../../services/media/webhooks/sign.ts";
import {
  createWebhookStore,
  webhooksComponent,
} from "../../services/media/webhooks/store-documents.ts";
import { newWebhook } from "../../services/media/webhooks/webhook.ts";
import { describeMongo } from "../support/mongo.ts";
import { webhookStoreContract } from "./webhooks.suite.ts";

await describeMongo(
  "webhooks in MongoDB",
  (mongo) => {
    webhookStoreContract(async () => {
      const name = mongo.newName();
      const connect = () => createWebhookStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    test("documents are as replicas of an earlier version write and read them", async () => {
      const name = mongo.newName();
      const store = createWebhookStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await store.open();
      const facts = {
        accountId: "a",
        keyId: "k",
        jobId: "j",
        type: "job.failed",
        body: "{}",
      } as const;
      const url = "https://x.example:8443/y";
      await store.insert(newWebhook({ webhookId: "evt_a", ...facts, url }, 5));
      await store.apply("evt_a", { kind: "begin", now: 5 });
      const result = { kind: "answered", status: 410 } as const;
      const ended = await store.apply("evt_a", { kind: "end", attempt: 1, result, now: 6 });
      const { giveUpAt, expiresAt } = ended ?? {};
      const webhooks = mongo.raw(name).collection("media_webhook");
      expect(await webhooks.findOne()).toStrictEqual({
        ...{
          _id: "evt_a",
          v: 3,
          host: "x.example:8443",
          ...facts,
          url,
          createdAt: 5,
          giveUpAt,
          expiresAt,
        },
        ...{
          state: "stopped",
          attempts: 1,
          lastAttemptAt: 5,
          lastStatus: 410,
          lastError: "status",
        },
      });
      await store.insertSecrets(firstSecrets("a", "whsec_1", 5));
      expect(await mongo.raw(name).collection("media_webhook_secret").findOne()).toStrictEqual({
        ...{ _id: "a", current: "whsec_1", createdAt: 5 },
      });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(
        mongoSchemaOf(webhooksComponent),
      );
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
