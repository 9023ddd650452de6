import { describe } from "vitest";
import { emptyAccountsContract } from "./jobs.empty-accounts.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("empty accounts at upstreams on SQLite", () => emptyAccountsContract(createJobsWorld));
