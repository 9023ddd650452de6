import { describeOnServers } from "../support/on-servers.ts";
import { speechCrashContract } from "./speech.crash.suite.ts";
import { speechFormatsContract } from "./speech.formats.suite.ts";
import { speechMoneyContract } from "./speech.money.suite.ts";
import { speechServiceContract } from "./speech.service.suite.ts";

await describeOnServers("speech on MongoDB and S3", (openStores) => {
  speechServiceContract(openStores);
  speechCrashContract(openStores);
  speechMoneyContract(openStores);
  speechFormatsContract(openStores);
});
