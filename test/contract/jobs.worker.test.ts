import { describe } from "vitest";
import { workerContract } from "./jobs.worker.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("workers on SQLite", () => workerContract(createJobsWorld));
