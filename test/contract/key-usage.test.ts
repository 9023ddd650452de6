import { describe } from "vitest";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { keyUsageContract } from "./key-usage.suite.ts";

const { newFile, connect } = sqliteFiles();

describe("on SQLite", () => {
  keyUsageContract(async () => {
    const file = await newFile();
    return () => ({ kind: "sqlite", sqlite: connect(file) });
  });
});
