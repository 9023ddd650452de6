import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { createSqliteSpeechStore } from "../../services/media/speech/store-sqlite.ts";
import { speechStoreContract } from "./speech.suite.ts";

const databases: SqliteDatabase[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const db of databases.splice(0)) db[Symbol.dispose]();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function connectTwice(): Promise<[SqliteDatabase, SqliteDatabase]> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-speech-"));
  folders.push(folder);
  const connect = () => {
    const db = openSqlite(join(folder, "genmesh.db"));
    databases.push(db);
    return db;
  };
  return [connect(), connect()];
}

describe("speech requests in SQLite", () => {
  speechStoreContract(async () => {
    const [one, two] = await connectTwice();
    return [createSqliteSpeechStore(one), createSqliteSpeechStore(two)];
  });

  test.each([
    ["what is due", "SELECT * FROM media_speech WHERE due_at <= 1 ORDER BY due_at LIMIT 1"],
    ["a slot", "SELECT * FROM media_speech WHERE key_id = 'k' AND idem_key = 'i'"],
  ])("%s is found by an index", async (_, sql) => {
    const [db] = await connectTwice();
    createSqliteSpeechStore(db);
    const plan = db.all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail));
    expect(plan.filter((step) => step.startsWith("SCAN"))).toEqual([]);
  });
});
