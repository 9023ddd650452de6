import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import {
  createStoredKeyStore,
  storedKeyComponent,
} from "../../services/catalog/stored-key-store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { storedKey, storedKeyContract } from "./stored-keys.suite.ts";

await describeMongo(
  "stored keys in MongoDB",
  (mongo) => {
    storedKeyContract(async () => {
      const name = mongo.newName();
      const connect = () => createStoredKeyStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    test("documents are as replicas of this version write and read them", async () => {
      const name = mongo.newName();
      const store = createStoredKeyStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await store.open();
      await store.set(storedKey("fal"));
      const { name: _id, ...rest } = storedKey("fal");
      const [found] = await mongo.raw(name).collection("catalog_stored_key").find().toArray();
      expect(found).toStrictEqual({ _id, ...rest });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(
        mongoSchemaOf(storedKeyComponent),
      );
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
