import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import { auditComponent, createActionStore } from "../../services/auth/action-store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { actionStoreContract } from "./actions.suite.ts";

await describeMongo(
  "the audit log in MongoDB",
  (mongo) => {
    actionStoreContract(async () => {
      const name = mongo.newName();
      const connect = () => createActionStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    test("documents are as replicas of an earlier version write and read them", async () => {
      const name = mongo.newName();
      const store = createActionStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await store.open();
      const begun = { actor: "me", action: "a.b", details: "{}", beganAtMs: 1 };
      const line = { ...begun, accountId: "acct_a", target: "" };
      await store.begin({ actionId: "act_a", ...line });
      const actions = mongo.raw(name).collection("audit_action");
      expect(await actions.findOne()).toStrictEqual({ _id: "act_a", ...line });
      const end = { outcome: "refused", reason: "late", endedAtMs: 2 } as const;
      await store.end({ actionId: "act_a", accountId: "", target: "t", ...end });
      expect(await actions.findOne()).toStrictEqual({ _id: "act_a", ...line, target: "t", ...end });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(mongoSchemaOf(auditComponent));
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
