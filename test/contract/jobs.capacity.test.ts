import { describe } from "vitest";
import { jobCapacityContract } from "./jobs.capacity.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("capacity of jobs on SQLite", () => jobCapacityContract(createJobsWorld));
