import { expect, test } from "vitest";
import { createMongoDocuments, mongoSchemaOf } from "#kit/documents/mongo.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { describeMongo } from "../support/mongo.ts";
import { documentsContract } from "./documents.suite.ts";
import { things } from "./documents.world.ts";

await describeMongo(
  "documents in MongoDB",
  (mongo) => {
    documentsContract(async (kind) => {
      const name = mongo.newName();
      const [one, two] = [mongo.connect(name), mongo.connect(name)];
      await migrate(one, [mongoSchemaOf(things)]);
      return [createMongoDocuments(one, kind), createMongoDocuments(two, kind)];
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(mongoSchemaOf(things));
      expect(shapes.length).toBeGreaterThan(20);
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
