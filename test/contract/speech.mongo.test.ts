import { expect, test } from "vitest";
import { migrate } from "#kit/store/mongo/migrate.ts";
import {
  createMongoSpeechStore,
  speechMongoSchema,
} from "../../services/media/speech/store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { speechStoreContract } from "./speech.suite.ts";

await describeMongo(
  "speech requests in MongoDB",
  (mongo) => {
    speechStoreContract(async () => {
      const name = mongo.newName();
      const [one, two] = [mongo.connect(name), mongo.connect(name)];
      await migrate(one, [speechMongoSchema]);
      return [createMongoSpeechStore(one), createMongoSpeechStore(two)];
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(speechMongoSchema);
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
