import { describe } from "vitest";
import { createJobsWorld } from "./jobs.world.ts";
import { webhookServiceContract } from "./webhooks.service.suite.ts";

describe("webhooks of media on SQLite", () => webhookServiceContract(createJobsWorld));
