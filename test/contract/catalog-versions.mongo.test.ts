import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import {
  catalogComponent,
  createVersionStore,
} from "../../services/catalog/version-store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { version, versionStoreContract } from "./catalog-versions.suite.ts";

await describeMongo(
  "versions of the catalog in MongoDB",
  (mongo) => {
    versionStoreContract(async () => {
      const name = mongo.newName();
      const connect = () => createVersionStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    test("documents are as replicas of this version write and read them", async () => {
      const name = mongo.newName();
      const store = createVersionStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await store.open();
      await store.add(version(1, { workflows: new Map([["a.json", { text: "{}" }]]) }));
      const { workflows: _, ...facts } = version(1);
      expect(await mongo.raw(name).collection("catalog_version").findOne()).toStrictEqual({
        _id: "1",
        ...facts,
        workflows: [{ name: "a.json", text: "{}" }],
      });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(mongoSchemaOf(catalogComponent));
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
