import { describe } from "vitest";
import { speechCrashContract } from "./speech.crash.suite.ts";

describe("deaths of speech on embedded stores", () => speechCrashContract());
