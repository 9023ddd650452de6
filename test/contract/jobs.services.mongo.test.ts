import { describeMongo } from "../support/mongo.ts";
import type { OpenWorldDatabase } from "./jobs.database.ts";
import { jobRacesContract } from "./jobs.races.suite.ts";
import { submissionContract } from "./jobs.submit.suite.ts";
import { workerContract } from "./jobs.worker.suite.ts";
import { createJobsWorld, type JobsWorldOptions } from "./jobs.world.ts";

await describeMongo("media on MongoDB", (mongo) => {
  const names = new Map<string, string>();
  const openDatabase: OpenWorldDatabase = (folder) => {
    const name = names.get(folder) ?? mongo.newName();
    names.set(folder, name);
    const database = { kind: "mongodb", mongo: mongo.connect(name) } as const;
    return { database, [Symbol.asyncDispose]: () => database.mongo[Symbol.asyncDispose]() };
  };
  const createWorld = (options?: JobsWorldOptions) => createJobsWorld({ openDatabase, ...options });
  submissionContract(createWorld, 200);
  jobRacesContract(createWorld);
  workerContract(createWorld);
});
