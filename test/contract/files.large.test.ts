import { describe } from "vitest";
import { largeFilesContract } from "./files.large.suite.ts";

describe("large files on embedded stores", () => {
  largeFilesContract();
});
