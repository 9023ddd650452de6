import { describeOnServers } from "../support/on-servers.ts";
import { fileServiceContract } from "./files.service.suite.ts";

await describeOnServers("file storage on MongoDB and S3", fileServiceContract);
