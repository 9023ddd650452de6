import { describe } from "vitest";
import { jobRacesContract } from "./jobs.races.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("races of jobs on SQLite", () => jobRacesContract(createJobsWorld));
