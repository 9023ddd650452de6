import { describe } from "vitest";
import { upstreamWaitsContract } from "./jobs.waits.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("waits for upstreams on SQLite", () => upstreamWaitsContract(createJobsWorld));
