import { describeOnServers } from "../support/on-servers.ts";
import { createJobsWorld, type JobsWorldOptions } from "./jobs.world.ts";
import { webhookServiceContract } from "./webhooks.service.suite.ts";

await describeOnServers("webhooks of media on MongoDB and S3", (openStores) => {
  webhookServiceContract((options?: JobsWorldOptions) =>
    createJobsWorld({ openStores, ...options }),
  );
});
