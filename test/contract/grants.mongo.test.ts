import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import { grantsComponent } from "../../services/billing/grants/store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { monthlyGrantContract } from "./grants.suite.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    monthlyGrantContract(async () => {
      const name = mongo.newName();
      return () => ({ kind: "mongodb", mongo: mongo.connect(name) });
    });

    test("an index serves every query", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(mongoSchemaOf(grantsComponent));
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
