import { describe } from "vitest";
import { speechServiceContract } from "./speech.service.suite.ts";

describe("speech on embedded stores", () => speechServiceContract());
