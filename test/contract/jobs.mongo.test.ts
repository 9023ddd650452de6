import { expect, test } from "vitest";
import { jobsMongoSchema } from "../../services/media/jobs/schema-mongo.ts";
import { createMongoJobStore } from "../../services/media/jobs/store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { jobStoreContract } from "./jobs.suite.ts";

await describeMongo("jobs in MongoDB", (mongo) => {
  jobStoreContract(async () => {
    const name = mongo.newName();
    const stores = [
      createMongoJobStore(mongo.connect(name)),
      createMongoJobStore(mongo.connect(name)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });

  // Last: it looks at what the tests above have sent.
  test("every query is served by a declared index, and every index serves one", async () => {
    const { shapes, unserved, unused, scans } = await mongo.judgeQueries(jobsMongoSchema);
    expect(shapes.length).toBeGreaterThan(10);
    expect(unserved).toEqual([]);
    // Nobody asks it: it refuses.
    expect(unused).toEqual(["media_job place"]);
    expect(scans).toEqual([]);
  });
});
