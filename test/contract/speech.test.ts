import { describe, expect, test } from "vitest";
import { openSpeechStore } from "../../services/media/speech/context.ts";
import { speechComponent } from "../../services/media/speech/store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { newIntent, speechStoreContract, t0 } from "./speech.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

const plans = createPlanWatch();

describe("speech requests in SQLite", () => {
  speechStoreContract(async () => {
    const [one, two] = await connectTwice((db) =>
      openSpeechStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    await one.prepare();
    return [one.store, two.store];
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(5);
    expect(plans.scans).toEqual([]);
  });

  test("rows of an earlier version become documents, and are nowhere else", async () => {
    const db = connect(await newFile());
    db.migrate("media_speech", speechComponent.tables.slice(0, 4));
    const intents = ["open", "spoken", "kept"].map((name) => newIntent(name));
    for (const intent of intents) {
      db.run(
        `INSERT INTO media_speech (speech_id, file_id, account_id, key_id, model_id, catalog_version, characters,
          price_per_million, amount, hold_check_at, owner, opened_at, status, due_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?)`,
        ...[intent.speechId, intent.fileId, intent.accountId, intent.keyId, intent.modelId],
        ...[intent.catalogVersion, intent.characters, intent.pricePerMillion, intent.amount],
        ...[intent.holdCheckAt, intent.owner, intent.openedAt, intent.leaseUntil],
      );
    }
    db.run(
      `UPDATE media_speech SET idem_key = 'é''"', fingerprint = 'print' WHERE speech_id = 'speech_open'`,
    );
    const sound = "size_bytes = 7, sha256 = 'digest', duration_seconds";
    db.run(
      `UPDATE media_speech SET status = 'settling', due_at = 5, ${sound} = 0.1 + 0.2 WHERE speech_id = 'speech_spoken'`,
    );
    db.run(
      `UPDATE media_speech SET status = 'closed', due_at = NULL, format = 'wav', ${sound} = 2 WHERE speech_id = 'speech_kept'`,
    );
    const { store, prepare } = openSpeechStore({ kind: "sqlite", sqlite: db });
    await prepare();
    const audio = { sizeBytes: 7, sha256: "digest" };
    const [open, spoken, kept] = intents;
    const idempotency = { key: "é'\"", fingerprint: "print" };
    const opened = { ...open, status: "open", idempotency };
    expect(await store.find("speech_open")).toStrictEqual(opened);
    expect(await store.findBySlot({ keyId: "key_1", key: "é'\"" })).toStrictEqual(opened);
    expect(await store.find("speech_spoken")).toStrictEqual({
      ...{ ...spoken, status: "settling", leaseUntil: 0 },
      audio: { ...audio, format: "mp3", durationSeconds: 0.1 + 0.2 },
    });
    expect(await store.find("speech_kept")).toStrictEqual({
      ...{ ...kept, status: "closed", leaseUntil: 0 },
      audio: { ...audio, format: "wav", durationSeconds: 2 },
    });
    expect(await store.due(t0 * 2, 9)).toHaveLength(2);
    const named = db.all(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'media%'",
    );
    expect(named.map(({ name }) => name)).toEqual(["media_speech"]);
  });
});
