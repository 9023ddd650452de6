import { describeOnServers } from "../support/on-servers.ts";
import { cancelContract } from "./jobs.cancel.suite.ts";
import { jobCapacityContract } from "./jobs.capacity.suite.ts";
import { deleteContract } from "./jobs.delete.suite.ts";
import { emptyAccountsContract } from "./jobs.empty-accounts.suite.ts";
import { storedOutputsContract } from "./jobs.outputs.suite.ts";
import { queuePlacesContract } from "./jobs.places.suite.ts";
import { jobRacesContract } from "./jobs.races.suite.ts";
import { jobRoutesContract } from "./jobs.routes.suite.ts";
import { submissionContract } from "./jobs.submit.suite.ts";
import { upstreamWaitsContract } from "./jobs.waits.suite.ts";
import { workerContract } from "./jobs.worker.suite.ts";
import { createJobsWorld, type JobsWorldOptions } from "./jobs.world.ts";

await describeOnServers("media on MongoDB and S3", (openStores) => {
  const createWorld = (options?: JobsWorldOptions) => createJobsWorld({ openStores, ...options });
  submissionContract(createWorld, 200);
  jobRacesContract(createWorld);
  workerContract(createWorld);
  upstreamWaitsContract(createWorld);
  emptyAccountsContract(createWorld);
  jobCapacityContract(createWorld);
  jobRoutesContract(createWorld);
  queuePlacesContract(createWorld);
  cancelContract(createWorld);
  deleteContract(createWorld);
  storedOutputsContract(createWorld);
});
