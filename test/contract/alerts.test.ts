import { describe } from "vitest";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { alertContract } from "./alerts.suite.ts";

const { newFile, connect } = sqliteFiles();

describe("on SQLite", () => {
  alertContract(async () => {
    const file = await newFile();
    return () => ({ kind: "sqlite", sqlite: connect(file) });
  });
});
