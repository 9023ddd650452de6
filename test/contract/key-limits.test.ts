import { DatabaseSync } from "node:sqlite";
import { describe } from "vitest";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { keyLimitContract } from "./key-limits.suite.ts";

const { newFile, connect } = sqliteFiles();

describe("on SQLite", () => {
  keyLimitContract(async () => {
    const file = await newFile();
    const run = async (sql: string) => {
      const shell = new DatabaseSync(file);
      shell.exec(sql);
      shell.close();
    };
    return {
      database: () => ({ kind: "sqlite", sqlite: connect(file) }),
      makeOld: () =>
        run(`UPDATE ledger_key SET day = NULL, day_spent = NULL, last_day = NULL, last_day_spent = NULL,
          week = NULL, week_spent = NULL, last_week = NULL, last_week_spent = NULL, ever_spent = NULL`),
      tamper: (counter) => run(`UPDATE ledger_key SET ${counter}_spent = 4`),
    };
  });
});
