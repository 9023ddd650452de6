import { describe } from "vitest";
import { keptFilesContract } from "./files.kept.suite.ts";
import { fileServiceContract } from "./files.service.suite.ts";

describe("file storage on embedded stores", () => {
  fileServiceContract();
  keptFilesContract();
});
