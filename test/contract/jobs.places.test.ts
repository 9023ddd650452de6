import { describe } from "vitest";
import { queuePlacesContract } from "./jobs.places.suite.ts";
import { createJobsWorld } from "./jobs.world.ts";

describe("places of waiting jobs on SQLite", () => queuePlacesContract(createJobsWorld));
