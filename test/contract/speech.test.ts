import { describe, expect, test } from "vitest";
import { createSqliteSpeechStore } from "../../services/media/speech/store-sqlite.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { speechStoreContract } from "./speech.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("speech requests in SQLite", () => {
  speechStoreContract(() => connectTwice((db) => createSqliteSpeechStore(db)));

  test.each([
    ["what is due", "SELECT * FROM media_speech WHERE due_at <= 1 ORDER BY due_at LIMIT 1"],
    ["a slot", "SELECT * FROM media_speech WHERE key_id = 'k' AND idem_key = 'i'"],
  ])("%s is found by an index", async (_, sql) => {
    const db = connect(await newFile());
    createSqliteSpeechStore(db);
    const plan = db.all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail));
    expect(plan.filter((step) => step.startsWith("SCAN"))).toEqual([]);
  });
});
