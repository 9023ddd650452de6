import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import { noticesComponent } from "../../services/notices/index.ts";
import { describeMongo } from "../support/mongo.ts";
import { noticeContract } from "./notices.suite.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    noticeContract(async () => {
      const name = mongo.newName();
      return () => ({ kind: "mongodb", mongo: mongo.connect(name) });
    });

    test("an index serves every query", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(mongoSchemaOf(noticesComponent));
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
