import { describe } from "vitest";
import { jobRoutesContract } from "./jobs.routes.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("routes of jobs on SQLite", () => jobRoutesContract(createJobsWorld));
