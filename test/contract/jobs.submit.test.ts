import { describe } from "vitest";
import { submissionContract } from "./jobs.submit.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("submissions on SQLite", () => submissionContract(createJobsWorld, 1_000));
