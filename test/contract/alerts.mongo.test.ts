import { expect, test } from "vitest";
import { alertsMongoSchema } from "../../services/billing/index.ts";
import { describeMongo } from "../support/mongo.ts";
import { alertContract } from "./alerts.suite.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    alertContract(async () => {
      const name = mongo.newName();
      return () => ({ kind: "mongodb", mongo: mongo.connect(name) });
    });

    test("an index serves every query", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(alertsMongoSchema);
      expect(shapes.length).toBeGreaterThan(3);
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
