import { BSON, type CommandStartedEvent, type Document } from "mongodb";
import { expect, test } from "vitest";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { createMongoJobStore } from "../../services/media/jobs/store-mongo.ts";
import { jobsMongoSchema } from "../../services/media/jobs/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { waitingLineContract } from "./jobs.line.suite.ts";
import { jobOf, now, query, queuedIn } from "./jobs.shapes.ts";
import { jobStoreContract } from "./jobs.suite.ts";
import { watchedJobsContract } from "./jobs.watches.suite.ts";

await describeMongo(
  "jobs in MongoDB",
  (mongo) => {
    const open = async (): Promise<[JobStore, JobStore]> => {
      const name = mongo.newName();
      const stores = [
        createMongoJobStore(mongo.connect(name)),
        createMongoJobStore(mongo.connect(name)),
      ] as const;
      for (const store of stores) await store.open();
      return [...stores];
    };
    jobStoreContract(open);
    waitingLineContract(open);
    watchedJobsContract(open);

    test("marks and renewals read nothing that is long of what jobs are to do", async () => {
      const name = mongo.newName();
      const store = createMongoJobStore(mongo.connect(name));
      await store.open();
      await queuedIn(store, "job_a");
      await store.claim(query());
      const reads: Document[] = [];
      const onCommand = ({ commandName, command }: CommandStartedEvent) => {
        if (commandName === "find") reads.push(command);
      };
      const heard = createMongoJobStore(mongo.connect(name, { onCommand }));
      await heard.marks(["job_a"]);
      await heard.renew("job_a", { kind: "heartbeat", fence: 1, now });
      expect(reads).toHaveLength(2);
      for (const { filter, projection } of reads) {
        const [found] = await mongo
          .raw(name)
          .collection("media_job")
          .find(filter, { projection })
          .toArray();
        // The text of the job alone has 32,000.
        expect(BSON.calculateObjectSize(found ?? {})).toBeLessThan(4_000);
      }
    });

    test("repeats of one submission ask for its slot one after the other", async () => {
      const name = mongo.newName();
      await createMongoJobStore(mongo.connect(name)).open();
      const sent: string[] = [];
      const onCommand = ({ commandName }: CommandStartedEvent) => {
        if (/^(insert|find)$/.test(commandName)) sent.push(commandName);
      };
      const store = createMongoJobStore(mongo.connect(name, { onCommand }));
      const ids = ["job_a", "job_b", "job_c", "job_d"];
      const holders = await Promise.all(ids.map((id) => store.insert(jobOf(id, { slot: "k" }))));
      expect(holders.map((job) => job?.jobId)).toEqual([undefined, "job_a", "job_a", "job_a"]);
      // The first insert succeeds. Each other one fails and reads the job of that slot, before the next insert is sent.
      const refused = ["insert", "find"];
      expect(sent).toEqual(["insert", ...refused, ...refused, ...refused]);
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(jobsMongoSchema);
      expect(shapes.length).toBeGreaterThan(10);
      expect(unserved).toEqual([]);
      // This index serves no query. It makes inserts fail.
      expect(unused).toEqual(["media_job place"]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
