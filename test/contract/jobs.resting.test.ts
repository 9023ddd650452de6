import { describe } from "vitest";
import { restingContract } from "./jobs.resting.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("jobs whose upstream rests, on SQLite", () => restingContract(createJobsWorld));
