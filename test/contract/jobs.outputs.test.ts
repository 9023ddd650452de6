import { describe } from "vitest";
import { storedOutputsContract } from "./jobs.outputs.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("stored outputs on SQLite", () => storedOutputsContract(createJobsWorld));
