import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import {
  alertsComponent,
  createAlertStore,
} from "../../services/billing/alerts/store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { alertContract } from "./alerts.suite.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    alertContract(async () => {
      const name = mongo.newName();
      return () => ({ kind: "mongodb", mongo: mongo.connect(name) });
    });

    test("documents are as replicas of an earlier version write and read them", async () => {
      const name = mongo.newName();
      const store = createAlertStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await store.open();
      const facts = { accountId: "a", keyId: "k", type: "balance.low", body: "{}", at: 5 } as const;
      await store.add([
        { alertId: "evt_a", ...facts, forgetAt: 9 },
        { alertId: "evt_b", ...facts, forgetAt: undefined },
      ]);
      await store.end("evt_b");
      const alerts = mongo.raw(name).collection("ledger_alert");
      expect(await alerts.find().sort({ _id: 1 }).toArray()).toStrictEqual([
        { _id: "evt_a", ...facts, forgetAt: 9, waiting: true },
        { _id: "evt_b", ...facts },
      ]);
      const limit = { usdMicros: 7n, since: 3 };
      await store.change("a", () => ({ lowBalance: limit, keys: {} }));
      await store.change("a", (before) => ({ ...before, webhookUrl: "https://x.example" }));
      const setting =
        '{"lowBalance":{"usdMicros":"7","since":3},"webhookUrl":"https://x.example","keys":{}}';
      expect(await mongo.raw(name).collection("ledger_alert_setting").findOne()).toStrictEqual({
        ...{ _id: "a", setting },
      });
    });

    test("an index serves every query", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(
        mongoSchemaOf(alertsComponent),
      );
      expect(shapes.length).toBeGreaterThan(3);
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
