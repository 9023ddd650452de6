import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import type { OperatorStore } from "../../services/auth/operator-store.ts";
import {
  createOperatorStore,
  operatorComponent,
} from "../../services/auth/operator-store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { operatorStoreContract } from "./operators.suite.ts";

await describeMongo(
  "operators in MongoDB",
  (mongo) => {
    operatorStoreContract(async (): Promise<[OperatorStore, OperatorStore]> => {
      const name = mongo.newName();
      const connect = () => createOperatorStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(
        mongoSchemaOf(operatorComponent),
      );
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
