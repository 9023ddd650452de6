import { describeOnServers } from "../support/on-servers.ts";
import { keptFilesContract } from "./files.kept.suite.ts";
import { largeFilesContract } from "./files.large.suite.ts";
import { fileServiceContract } from "./files.service.suite.ts";

await describeOnServers("file storage on MongoDB and S3", (openStores) => {
  fileServiceContract(openStores);
  keptFilesContract(openStores);
  largeFilesContract(openStores);
});
