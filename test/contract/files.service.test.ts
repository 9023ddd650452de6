import { describe } from "vitest";
import { fileServiceContract } from "./files.service.suite.ts";

describe("file storage on embedded stores", () => fileServiceContract());
